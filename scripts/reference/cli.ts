// The command line reference, generated from the data that help and completion use.

import { COMMANDS, SECTIONS } from '../../packages/server/src/commands/commands.ts'
import { type Command, EXIT, type Flag } from '../../packages/server/src/commands/line/command.ts'
import { GLOBAL_FLAGS } from '../../packages/server/src/commands/line/global-flags.ts'
import { EXIT_SENTENCES, flagSentence, flagUsage, usageOf } from '../../packages/server/src/commands/line/help.ts'
import { code, heading, table } from './markdown.ts'

export function commandLinePage(): string {
  const exits = Object.keys(EXIT) as (keyof typeof EXIT)[]
  return [
    heading('Command line', 'packages/server/src/commands'),
    'The commands are written for the folder of a clone; elsewhere, use the path of the file `switchyard` in the clone, or `switchyard` if it is on your PATH, as in the image. Without a command, it runs the service. `./switchyard COMMAND --help` prints the same information as this page, and as JSON if you add `--json`.',
    'Results are written to stdout, remarks and progress to stderr. With `--json`, stdout is one JSON value, or one per line for commands that run until they are stopped.',
    'Times are written as `2h` (two hours ago) or `2026-11-14T09:00:00Z`. Sources, destinations, OAuth applications and tokens can be given by id or by name.',
    '',
    ...SECTIONS.flatMap(({ title, commands }) => [
      `**${title}**: ${commands.map(({ name }) => `[${code(name)}](#${anchor(name)})`).join(', ')}`,
      '',
    ]),
    '## Global flags',
    '',
    flagTable(GLOBAL_FLAGS),
    '',
    '## Exit codes',
    '',
    table(
      ['Code', 'Meaning'],
      exits.map((name) => [code(String(EXIT[name])), EXIT_SENTENCES[name]]),
    ),
    '',
    ...COMMANDS.flatMap(commandText),
  ].join('\n')
}

function commandText(command: Command): string[] {
  const { name, summary, details, arguments: positional = [], flags = {}, examples = [] } = command
  const rows = positional.map(({ name, sentence }) => [code(name), sentence])
  return [
    `## ${name}`,
    '',
    `${summary}.`,
    '',
    ...(details === undefined ? [] : [details, '']),
    ['```sh', `switchyard ${usageOf(command)}${Object.keys(flags).length > 0 ? ' [flags]' : ''}`, '```'].join('\n'),
    '',
    ...(rows.length === 0 ? [] : [table(['Argument', 'Meaning'], rows), '']),
    ...(Object.keys(flags).length === 0 ? [] : [flagTable(flags), '']),
    ...(examples.length === 0 ? [] : [['```sh', ...examples, '```'].join('\n'), '']),
  ]
}

function flagTable(flags: Readonly<Record<string, Flag>>): string {
  return table(
    ['Flag', 'Meaning'],
    Object.entries(flags).map(([name, flag]) => [code(flagUsage(name, flag)), flagSentence(flag)]),
  )
}

/** The anchor that GitHub generates for a heading. */
function anchor(name: string): string {
  return name.replaceAll(' ', '-')
}
