// Parses a Dockerfile and its .dockerignore as a build does, as far as our files need it: for the rehearsal of the image and the tests
// of the files in deploy/.

/** Wildcards in .dockerignore, and the regular expressions for them. */
const WILD: Record<string, string> = { '**/': '(?:.*/)?', '**': '.*', '*': '[^/]*', '?': '[^/]' }

/** Returns the instructions without comments, with continued lines joined. */
export function instructions(text: string): [word: string, rest: string][] {
  const lines = text.replaceAll(/^\s*#.*\n/gm, '').replaceAll(/\\\n\s*/g, ' ')
  return lines.split('\n').flatMap((line) => {
    const [, word, rest] = /^([A-Z]+)\s+(.*)$/.exec(line.trim()) ?? []
    return word === undefined || rest === undefined ? [] : [[word, rest]]
  })
}

/** As in Docker, the last rule that matches a file, or a folder above it, decides. */
export function ignoreRules(text: string): (file: string) => boolean {
  const rules = text.split('\n').flatMap((line) => {
    const rule = line.trim()
    if (rule === '' || rule.startsWith('#')) return []
    const glob = rule.replace(/^!/, '').replace(/^\/|\/$/g, '')
    const source = glob.replaceAll(/[.+^${}()|[\]\\]/g, String.raw`\$&`).replaceAll(/\*\*\/|\*\*|\*|\?/g, (wild) => WILD[wild] as string)
    return [{ keeps: rule.startsWith('!'), pattern: new RegExp(`^${source}$`) }]
  })
  return (file) => {
    const parts = file.split('/')
    const paths = parts.map((_, at) => parts.slice(0, at + 1).join('/'))
    return rules.reduce((isIgnored, { keeps, pattern }) => (paths.some((path) => pattern.test(path)) ? !keeps : isIgnored), false)
  }
}
