"""Fetches a browser for the tests where there is none and nobody may install one (D48).

The npm package ``@sparticuz/chromium`` holds a Chromium for Linux on x86-64 that needs no other
package. Exactly the locked one is unpacked into ``.browser/`` of the checkout.
"""
