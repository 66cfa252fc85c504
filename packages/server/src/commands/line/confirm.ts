// Asks before a command deletes something that cannot be brought back: in a terminal with a question, elsewhere by requiring --yes, so that a
// script says what it means. All commands that delete use it.

import { type Call, CommandProblem, EXIT, type Flag, UsageProblem } from './command.ts'

export const YES_FLAG: Readonly<Record<string, Flag>> = {
  yes: { placeholder: null, description: 'Do not ask for confirmation. Required if there is no terminal to ask in.' },
}

/** `question` names what is deleted and what follows, such as `Delete the source web (src_1)? Its write keys will be rejected.` Throws unless it is confirmed. */
export async function confirm({ has, ask }: Pick<Call, 'has' | 'ask'>, question: string): Promise<void> {
  if (has('yes')) return
  if (ask === null)
    throw new UsageProblem(`Nothing was changed, because there is no terminal to ask for confirmation: ${question} To confirm, add --yes.`)
  const answer = await ask(`${question} [y/N] `)
  if (!/^y(es)?$/i.test(answer.trim())) throw new CommandProblem('Nothing was changed.', EXIT.failed)
}
