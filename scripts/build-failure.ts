// Finds the reason of a failed build and shortens it to one line, for somebody who only wants to start the service. Bundlers print a stack trace and source code.

import { stripVTControlCharacters } from 'node:util'

/** Lines that only say that the build failed, or where in the bundler. */
const SAYS_NOTHING = /^(✗|x Build failed|build error|error during build|build failed|failed to load config|file:|at |vitepress v)/i

/** The first sentence of the error in the output of a build. */
export function reasonOf(output: string): string {
  const lines = stripVTControlCharacters(output)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !SAYS_NOTHING.test(line))
  const [, message] = /^(?:\w*Error(?: \[\w+\])?): (.+)$/m.exec(lines.join('\n')) ?? []
  const [sentence = ''] = (message ?? lines[0] ?? 'the build ended without a message').split('. ')
  return sentence.replace(/\.$/, '')
}
