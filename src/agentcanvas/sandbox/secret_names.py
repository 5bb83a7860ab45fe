"""Names under which people keep keys, tokens and passwords.

Only names: a file of such a name is not handed to agents by a pattern, it has to be named itself.
What is inside files is judged elsewhere.
"""

from __future__ import annotations

import re

_NAMES = re.compile(
    rb"""
      \.env(?!\.(?:test|testing|ci|example|sample|template|dist|defaults?|schema)$)(?:\..+)?
    | .+\.env
    | .+\.(?:pem|key|p12|pfx|p8|jks|keystore|kdbx|ppk|ovpn|asc|gpg|age)
    | id_(?:rsa|dsa|ecdsa|ed25519).*
    | \.?(?:netrc|npmrc|pypirc|pgpass|htpasswd|git-credentials|dockercfg|boto|s3cfg|vault-token)
    | .*(?:credential|secret|passwd|password|service[-_]?account|api[-_]?key).*
    | .+\.(?:tfstate|tfstate\.backup|tfvars)
    | kubeconfig.*
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_FOLDERS = {b".ssh", b".aws", b".gnupg", b".kube", b".docker", b".azure", b".gcloud", b"secrets"}


def looks_secret(path: bytes) -> bool:
    """Tell whether the name of a file, or of a folder it is in, is one for secrets."""
    *folders, name = path.split(b"/")
    in_folder = any(folder.lower() in _FOLDERS for folder in folders)
    return in_folder or _NAMES.fullmatch(name) is not None
