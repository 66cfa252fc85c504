// The small pages that the service itself shows during a login: they load nothing and need no script. Everything in them is escaped.

type PageOf =
  | { kind: 'no_access'; contact: string | null }
  | { kind: 'failed'; message: string; returnTo: string }
  | { kind: 'continue'; to: string }
  | { kind: 'consent'; person: string; computer: string; port: number; fields: Readonly<Record<string, string>> }
  | { kind: 'log_in'; start: string }

const STYLE =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:12vh auto;padding:0 1rem;color:#1c1f24;background:#fff}h1{font-size:1.4rem}button,.button{font:inherit;padding:.5rem 1rem;border:1px solid #1f5fbf;border-radius:4px;background:#1f5fbf;color:#fff;text-decoration:none;cursor:pointer}@media(prefers-color-scheme:dark){body{color:#e6e8eb;background:#16181c}a{color:#8ab4f8}}'

export function loginPage(page: PageOf): string {
  const { title, content, head = '' } = contentOf(page)
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title} · Switchyard</title>${head}<style>${STYLE}</style></head><body><main><h1>${title}</h1>${content}</main></body></html>`
}

function contentOf(page: PageOf): { title: string; content: string; head?: string } {
  switch (page.kind) {
    case 'no_access': {
      const contact = page.contact === null ? 'Ask an admin of this service for access.' : `Ask for access: ${escaped(page.contact)}`
      return {
        title: 'No access',
        content: `<p>You are logged in at the identity provider, but it gives you no role in this service.</p><p>${contact}</p><p><a href="/">Back to the login page</a></p>`,
      }
    }
    case 'failed': {
      const again = `/api/login/oidc?${new URLSearchParams({ returnTo: page.returnTo }).toString()}`
      return {
        title: 'The login failed',
        content: `<p>${escaped(page.message)}</p><p><a href="${escaped(again)}">Log in again</a></p><p><a href="/">Back to the login page</a></p>`,
      }
    }
    case 'continue':
      return {
        title: 'You are logged in',
        head: `<meta http-equiv="refresh" content="0;url=${escaped(page.to)}">`,
        content: `<p><a href="${escaped(page.to)}">Continue</a></p>`,
      }
    case 'log_in':
      return {
        title: 'Log in first',
        content: `<p>The command line asks for access to this service in your name.</p><p><a class="button" href="${escaped(page.start)}">Log in</a></p>`,
      }
    case 'consent': {
      const fields = Object.entries(page.fields).map(
        ([name, value]) => `<input type="hidden" name="${escaped(name)}" value="${escaped(value)}">`,
      )
      return {
        title: 'Give the command line access?',
        content: `<p>You are logged in as <strong>${escaped(page.person)}</strong>. A program on this computer, which listens on port ${page.port}, asks for a personal token with the name <strong>${escaped(page.computer)}</strong>. With it, the program can do what you can do.</p><p>Continue only if you have just run <code>switchyard login</code>.</p><form method="post" action="/api/login/cli">${fields.join('')}<button type="submit">Give access</button></form><p><a href="/">Cancel</a></p>`,
      }
    }
  }
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`)
}
