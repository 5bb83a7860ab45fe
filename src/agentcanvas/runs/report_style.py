"""How the page of a report looks: on light, on dark and on paper."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#59636e;--line:#d8dee4;
--page:#fff;--card:#f6f8fa;--good:#1a7f37;--bad:#cf222e;--open:#9a6700}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9198a1;--line:#30363d;
--page:#0d1117;--card:#151b23;--good:#3fb950;--bad:#f85149;--open:#d29922}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);
font:15px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
main{max-width:62rem;margin:0 auto;padding:2.5rem 1.25rem 4rem;overflow-wrap:anywhere}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .5rem}
h2{font-size:1.1rem;margin:2.5rem 0 .75rem;padding-bottom:.35rem;
border-bottom:1px solid var(--line)}
h3{font-size:1rem;margin:0}
p{margin:0 0 .6rem}
.over{color:var(--soft);font-size:.8rem;letter-spacing:.08em;text-transform:uppercase;margin:0}
.request{font-size:1.05rem}
.request,.text,td{white-space:pre-line}
.quiet,dt,th,time{color:var(--soft)}
.pill{display:inline-block;border:1px solid currentColor;border-radius:1rem;padding:0 .6rem;
font-size:.8rem;line-height:1.45;white-space:nowrap;font-weight:600}
.good{color:var(--good)}.bad{color:var(--bad)}.open{color:var(--open)}
dl{display:flex;flex-wrap:wrap;gap:.75rem 2rem;margin:1rem 0 0}
dt{font-size:.8rem}dd{margin:0;font-variant-numeric:tabular-nums}
article{background:var(--card);border:1px solid var(--line);border-radius:.5rem;
padding:1rem 1.1rem;margin:0 0 1rem}
.title{display:flex;justify-content:space-between;align-items:baseline;gap:1rem;margin-bottom:.5rem}
ul.files{list-style:none;margin:0 0 .6rem;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1rem}
code{font:.85em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
time{font-variant-numeric:tabular-nums;white-space:nowrap}
table{border-collapse:collapse;width:100%}
th{text-align:start;font-weight:500;font-size:.8rem;white-space:nowrap}
th,td{padding:.3rem .8rem .3rem 0;vertical-align:top;border-bottom:1px solid var(--line)}
tr:last-child td{border-bottom:0}
td:last-child,th:last-child{padding-inline-end:0}
.steps{margin-top:.5rem;border-top:1px solid var(--line)}
.steps td:nth-child(-n+2){width:1%;white-space:nowrap}
.steps td:nth-child(2){color:var(--soft)}
.timed td:first-child{width:1%}
.timeline td:nth-child(-n+2){width:1%;white-space:nowrap}
.timeline td:nth-child(3){width:8rem;min-width:6rem}
.figures td:nth-child(n+2):nth-child(-n+5){font-variant-numeric:tabular-nums}
.figures tr:last-child td{font-weight:600;border-top:1px solid var(--ink)}
@media (max-width:40rem){.title{display:block}table{font-size:.9rem}}
@media print{:root{--ink:#000;--soft:#444;--line:#bbb;--page:#fff;--card:#fff;
--good:#11562a;--bad:#8f1019;--open:#6b4800}body{font-size:10.5pt}main{max-width:none;padding:0}
article,tr{break-inside:avoid}h2,h3{break-after:avoid}thead{display:table-header-group}}
"""
