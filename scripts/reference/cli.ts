// The command line reference, generated from the data that help and completion use.

import { COMMANDS, SECTIONS } from '../../packages/server/src/commands/commands.ts'
import { type Command, EXIT, type Flag } from '../../packages/server/src/commands/line/command.ts'
import { GLOBAL_FLAGS } from '../../packages/server/src/commands/line/global-flags.ts'
import { EXIT_SENTENCES, flagSentence, flagUsage, usageOf } from '../../packages/server/src/commands/line/help.ts'
import { inForm } from '../../packages/server/src/installation/command-form.ts'
import { code, heading, table } from './markdown.ts'

const SOURCE = 'packages/server/src/commands'

/** One page for each first word, because all commands on one page are too long to read. The overview has the anchors that all commands had there. */
export function commandLinePages(): { path: string; render: () => string }[] {
  const words = [...new Set(COMMANDS.map(groupOf))]
  return [
    { path: 'docs/reference/cli.md', render: overviewPage },
    ...words.map((word) => ({ path: `docs/reference/cli/${word}.md`, render: () => groupPage(word) })),
  ]
}

function overviewPage(): string {
  const exits = Object.keys(EXIT) as (keyof typeof EXIT)[]
  return [
    heading('Command line', SOURCE),
    'The commands are written for the folder of a clone; elsewhere, use the path of the file `switchyard` in the clone, or `switchyard` if it is on your PATH, as in the image. Without a command, it runs the service. `./switchyard COMMAND --help` prints the same information as these pages, and as JSON if you add `--json`.',
    'Results are written to stdout, remarks and progress to stderr. With `--json`, stdout is one JSON value, or one per line for commands that run until they are stopped.',
    'Times are written as `2h` (two hours ago) or `2026-11-14T09:00:00Z`. Sources, destinations, OAuth applications and tokens can be given by id or by name.',
    '',
    '## Commands',
    '',
    ...SECTIONS.flatMap(({ title, commands }) => [
      `### ${title}`,
      '',
      table(
        ['Command', 'Use'],
        commands.map((command) => [
          `<a id="${anchor(command.name)}"></a>[${code(command.name)}](cli/${groupOf(command)}.md#${anchor(command.name)})`,
          `${command.summary}.`,
        ]),
      ),
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
  ].join('\n')
}

function groupPage(word: string): string {
  const commands = COMMANDS.filter((command) => groupOf(command) === word)
  return [
    heading(`switchyard ${word}`, SOURCE),
    'The [overview](../cli.md) has all commands, the global flags and the exit codes.',
    '',
    ...commands.flatMap(commandText),
  ].join('\n')
}

function groupOf({ name }: Command): string {
  return name.split(' ', 1)[0] as string
}

function commandText(command: Command): string[] {
  const { name, summary, details, arguments: positional = [], flags = {}, examples = [] } = command
  const rows = positional.map(({ name, description }) => [code(name), description])
  return [
    `## ${name}`,
    '',
    `${summary}.`,
    '',
    ...(details === undefined ? [] : [details, '']),
    ['```sh', `./switchyard ${usageOf(command)}${Object.keys(flags).length > 0 ? ' [flags]' : ''}`, '```'].join('\n'),
    '',
    ...(rows.length === 0 ? [] : [table(['Argument', 'Meaning'], rows), '']),
    ...(Object.keys(flags).length === 0 ? [] : [flagTable(flags), '']),
    ...(examples.length === 0 ? [] : [['```sh', ...examples.map((line) => inForm(line, './switchyard')), '```'].join('\n'), '']),
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
