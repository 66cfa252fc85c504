// The look of the reference, as text because it is put into the page. One column on a phone; contents, words and examples
// side by side where there is room. Colours are in one place, once for light and once for dark.

export const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" width="24" height="24" aria-hidden="true"><rect width="32" height="32" rx="7" fill="#1c7ed6"/><path d="M6 11h7c5 0 5 10 10 10h3M6 21h7c2 0 3-1.500 4-3.500M19 14c1-1.800 2-3 4-3h3" fill="none" stroke="#fff" stroke-width="2.600" stroke-linecap="round"/></svg>'

export const STYLE = `
:root {
  color-scheme: light dark;
  --back: #ffffff; --panel: #f6f8f8; --line: #dde3e4; --text: #17212b; --soft: #51606d; --accent: #1864ab; --mark: #e3effa;
  --code-back: #10202b; --code-text: #dce8ee; --code-soft: #9db3c0; --chip: #eef2f3;
  --get: #0b6bb5; --post: #137a3e; --patch: #9a5b00; --delete: #b3261e; --put: #6b3fa0;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #0e151b; --panel: #141e26; --line: #2a3843; --text: #e4ebf0; --soft: #a3b3bf; --accent: #74c0fc; --mark: #12293d;
    --code-back: #0a1116; --code-text: #dce8ee; --code-soft: #8fa5b2; --chip: #1d2a34;
    --get: #6cb8f5; --post: #5fd08d; --patch: #f0b45a; --delete: #ff8f87; --put: #c2a1f0;
  }
}
* { box-sizing: border-box }
html { scroll-behavior: smooth; scroll-padding-top: 4.5rem; -webkit-text-size-adjust: 100% }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto } }
body { margin: 0; background: var(--back); color: var(--text); font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; font-size: .875em }
a { color: var(--accent); text-underline-offset: .15em }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 4px }
[hidden] { display: none !important }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%) }
.skip { position: absolute; left: 1rem; top: -4rem; background: var(--back); padding: .5rem 1rem; z-index: 3; border-radius: 6px }
.skip:focus { top: .5rem }

.top { position: sticky; top: 0; z-index: 2; display: flex; gap: .75rem; align-items: center; height: 3.5rem; padding: 0 1.5rem; background: var(--back); border-bottom: 1px solid var(--line) }
.brand { display: flex; gap: .6rem; align-items: center; color: inherit; font-weight: 700; font-size: 1.05rem; text-decoration: none }
.back { margin-left: auto }
.version { color: var(--soft); font-size: .875rem }

.side { font-size: .84rem; scrollbar-width: thin }
.side ul { list-style: none; margin: 0; padding: 0 }
.side a { display: block; padding: .2rem .5rem; border-radius: 6px; color: inherit; text-decoration: none }
.side a:hover { background: var(--chip) }
.side a[aria-current] { background: var(--mark); font-weight: 600 }
.side > details > summary { cursor: pointer; font-weight: 600; padding: .8rem 0 }
.side .parts > li > a { font-weight: 600 }
.side .part { margin-top: .6rem }
.side .part li a { display: flex; gap: .4rem; align-items: baseline }
.where { min-width: 0; overflow-wrap: anywhere }
.verb { flex: 0 0 2.7rem; font: 700 .66rem/1.4 ui-monospace, Menlo, Consolas, monospace; letter-spacing: .02em }
.find { margin: 0 0 .6rem }
.find input { width: 100%; font: inherit; padding: .45rem .6rem; border: 1px solid var(--soft); border-radius: 8px; background: var(--back); color: inherit }
.find input::placeholder { color: var(--soft); opacity: 1 }
#found { display: block; color: var(--soft); padding: .1rem .5rem }

main { min-width: 0; padding: 0 1.25rem 6rem }
h1 { font-size: 2.1rem; line-height: 1.2; margin: 2.5rem 0 .5rem; letter-spacing: -.02em }
h2 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .25rem; letter-spacing: -.01em }
h3 { font-size: 1.15rem; line-height: 1.35; margin: 0 0 .5rem }
h4 { font-size: .8rem; text-transform: uppercase; letter-spacing: .05em; color: var(--soft); margin: 1.5rem 0 .35rem }
h4 .type, h4 .status { text-transform: none; letter-spacing: 0 }
p { margin: 0 0 .75rem; max-width: 46rem }
.lead { color: var(--soft); font-size: 1.05rem; max-width: 46rem }
.chapter { padding-top: 3rem }
.chapter + .chapter { border-top: 1px solid var(--line); margin-top: 3rem }
.chapter#start { padding-top: 0 }
.operation { padding: 2rem 0; display: grid; gap: 1.25rem }
.operation + .operation { border-top: 1px dashed var(--line) }
.operation.plain { padding-top: .5rem }
.say, .show { min-width: 0 }
.anchor { opacity: 0; text-decoration: none; padding: 0 .2rem }
h3:hover .anchor, .anchor:focus { opacity: 1 }
.path { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center }
.path code { font-size: .95rem; overflow-wrap: anywhere }
.method { font: 700 .75rem/1 ui-monospace, Menlo, Consolas, monospace; padding: .3rem .45rem; border-radius: 5px; border: 1.5px solid currentColor }
.get { color: var(--get) } .post { color: var(--post) } .patch { color: var(--patch) } .delete { color: var(--delete) } .put { color: var(--put) }
.role { font-size: .75rem; color: var(--soft); background: var(--chip); border-radius: 99px; padding: .1rem .6rem }
.role::before { content: "role: " }
.alias { font-size: .9rem; color: var(--soft) }
.fields { list-style: none; margin: 0; padding: 0; border-top: 1px solid var(--line) }
.fields > li { padding: .55rem 0; border-bottom: 1px solid var(--line) }
.fields.wide { max-width: 60rem }
.field { display: flex; flex-wrap: wrap; gap: .15rem .55rem; align-items: baseline }
.name { font-weight: 650; font-size: .9rem; overflow-wrap: anywhere }
.type, .limits { color: var(--soft); font-size: .85rem }
.required { color: var(--delete); font-size: .75rem; font-weight: 600 }
.about { font-size: .94rem; max-width: 44rem }
.limits code { background: var(--chip); border-radius: 4px; padding: .05rem .3rem; overflow-wrap: anywhere }
.about code, p code, .lead code, td code { background: var(--chip); border-radius: 4px; padding: .05rem .3rem; overflow-wrap: anywhere }
main details { margin: .4rem 0 }
main summary { cursor: pointer; color: var(--accent); font-size: .9rem; width: fit-content; border-radius: 4px }
details > .fields { margin: .4rem 0 .4rem .2rem; padding-left: .9rem; border-left: 2px solid var(--line) }
.errors { margin-top: 1.25rem }
.errors ul { list-style: none; margin: .4rem 0 0; padding: 0; display: grid; gap: .35rem }
.errors li { line-height: 1.8 }
.status { font: 700 .75rem/1 ui-monospace, Menlo, Consolas, monospace; color: var(--post) }
.status.bad { color: var(--delete) }

.sample { color-scheme: dark; margin: 0 0 1rem; background: var(--code-back); color: var(--code-text); border-radius: 10px; overflow: hidden; border: 1px solid var(--line) }
.sample figcaption { display: flex; gap: .5rem; align-items: center; min-height: 2.4rem; padding: .3rem .9rem; font-size: .8rem; color: var(--code-soft); border-bottom: 1px solid #ffffff1f }
.sample .status { color: #7ee2a8 }
.sample pre { margin: 0; padding: .9rem; overflow: auto; max-height: 26rem; line-height: 1.55; scrollbar-width: thin; font-size: .9rem }
.sample .copy { white-space: pre-wrap; overflow-wrap: anywhere }
.sample pre:focus-visible { outline-offset: -3px }
.copying { margin-left: auto; font: 600 .78rem/1 system-ui, sans-serif; color: var(--code-text); background: #ffffff1a; border: 0; border-radius: 6px; padding: .45rem .7rem; cursor: pointer }
.copying:hover { background: #ffffff33 }

.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 10px }
table { border-collapse: collapse; width: 100%; font-size: .92rem }
th, td { text-align: left; vertical-align: top; padding: .6rem .8rem; border-bottom: 1px solid var(--line) }
tbody tr:last-child > * { border-bottom: 0 }
thead th { background: var(--panel); font-size: .8rem; color: var(--soft) }
tbody th { font-weight: 600 }
tr:target { background: var(--mark) }
.operation:target h3, .schema:target h3 { color: var(--accent) }
.flag { color: var(--soft); font-weight: 400 }
.schema { padding: 1.25rem 0; max-width: 60rem }

@media (min-width: 901px) {
  body { display: grid; grid-template-columns: 17rem minmax(0, 1fr) }
  .top { grid-column: 1 / -1 }
  .side { position: sticky; top: 3.5rem; align-self: start; height: calc(100vh - 3.5rem); overflow-y: auto; padding: 1rem .75rem 3rem 1rem; border-right: 1px solid var(--line); background: var(--panel) }
  .side > details > summary { display: none }
  main { padding: 0 2.5rem 8rem; max-width: 90rem }
}
@media (min-width: 1150px) {
  .operation { grid-template-columns: minmax(0, 1fr) minmax(0, 27rem); gap: 2.5rem }
  .show { position: sticky; top: 4.5rem; align-self: start }
}
@media (min-width: 1500px) { .operation { grid-template-columns: minmax(0, 1fr) minmax(0, 36rem) } }
@media (max-width: 900px) {
  .side { border-bottom: 1px solid var(--line); padding: 0 1.25rem; background: var(--panel) }
  .side[open], .side details[open] { padding-bottom: 1rem }
  .side a { padding: .45rem .5rem }
  .top { padding: 0 1.25rem }
  h1 { font-size: 1.75rem }
  .anchor { opacity: 1 }
}
@media (max-width: 640px) {
  .version { display: none }
  table, tbody, tr, th, td { display: block }
  thead { display: none }
  tbody tr { padding: .7rem .9rem; border-bottom: 1px solid var(--line) }
  th, td { border: 0; padding: .1rem 0 }
  #errors tbody th, #errors td:nth-child(2) { display: inline-block; margin-right: .6rem }
  td:last-child:not(:nth-child(3)) { color: var(--soft) }
}
@media print {
  .side, .top, .skip, .copying, .anchor, .find { display: none !important }
  body { display: block; font-size: 10.5pt }
  main { max-width: none; padding: 0 }
  .operation { display: block; break-inside: avoid-page }
  .show { position: static }
  .sample { background: none; color: #000; border: 1px solid #999 }
  .sample figcaption, .sample .status { color: #333 }
  .sample pre { max-height: none; white-space: pre-wrap }
}
`
