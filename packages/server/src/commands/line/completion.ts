// `switchyard completion SHELL`: generates a completion script from the command data. The script neither calls the service nor starts a
// process while the user types.

import type { Command, Flag } from './command.ts'
import { GLOBAL_FLAGS } from './global-flags.ts'

const SHELLS = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof SHELLS)[number]

export function completionCommand(commands: () => readonly Command[]): Command {
  return {
    name: 'completion',
    summary: 'Print a shell completion script',
    arguments: [{ name: 'SHELL', description: 'The shell: bash, zsh or fish.', values: SHELLS }],
    examples: [
      'source <(switchyard completion bash)',
      'switchyard completion zsh > "${fpath[1]}/_switchyard"',
      'switchyard completion fish > ~/.config/fish/completions/switchyard.fish',
    ],
    async run({ arguments: [shell], json, out }) {
      const script = SCRIPTS[shell as Shell](commands())
      if (json) out.json({ shell, script })
      else out.text(script)
    },
  }
}

const SCRIPTS: Record<Shell, (commands: readonly Command[]) => string> = { bash: bashScript, zsh: zshScript, fish: fishScript }

/** Every first word with its summary and its subcommands. */
function firstWords(commands: readonly Command[]): { word: string; summary: string; verbs: { verb: string; summary: string }[] }[] {
  const words = [...new Set(commands.map(({ name }) => name.split(' ', 1)[0] as string))]
  return words.map((word) => {
    const verbs = commands
      .filter(({ name }) => name.startsWith(`${word} `))
      .map(({ name, summary }) => ({ verb: name.slice(word.length + 1), summary }))
    const own = commands.find(({ name }) => name === word)
    return { word, summary: own?.summary ?? verbs.map(({ verb }) => verb).join(', '), verbs }
  })
}

function flagsOf(command: Command | undefined): [name: string, flag: Flag][] {
  return Object.entries({ ...command?.flags, ...GLOBAL_FLAGS })
}

function flagNames(command: Command | undefined): string {
  return flagsOf(command)
    .map(([name]) => `--${name}`)
    .join(' ')
}

/** The allowed values of the first argument, if there are any. */
function firstValues({ arguments: [first] = [] }: Command): readonly string[] {
  return first?.values ?? []
}

// ── bash ────────────────────────────────────────────────────────────────────────────────────────────────────────────

function bashScript(commands: readonly Command[]): string {
  const words = firstWords(commands)
  const verbs = words.filter(({ verbs }) => verbs.length > 0)
  const values = valuesByFlag(commands)
  const cases = (rows: readonly (readonly [string, string])[]): string =>
    rows.map(([pattern, list]) => `    ${quotedWord(pattern)}) printf '%s' ${quotedWord(list)} ;;`).join('\n')
  return `# Completion of switchyard for bash: source <(switchyard completion bash)
_switchyard_verbs() {
  case "$1" in
${cases(verbs.map(({ word, verbs }) => [word, verbs.map(({ verb }) => verb).join(' ')] as const))}
  esac
}
_switchyard_flags() {
  case "$1" in
${cases(commands.map((command) => [command.name, flagNames(command)] as const))}
    *) printf '%s' ${quotedWord(flagNames(undefined))} ;;
  esac
}
_switchyard_values() {
  case "$1" in
${cases([
  ...values.map(([name, flag]) => [name, (flag.values as readonly string[]).join(' ')] as const),
  ...commands.flatMap((command) => (firstValues(command).length > 0 ? [[command.name, firstValues(command).join(' ')] as const] : [])),
])}
  esac
}
_switchyard_takes_value() {
  case "$1" in
    ${valueFlags(commands)
      .map((name) => `--${name}`)
      .join('|')}) return 0 ;;
  esac
  return 1
}
_switchyard() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" first='' second='' word i list=''
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    if [[ "$word" == -* ]]; then
      _switchyard_takes_value "$word" && ((i++))
    elif [[ -z "$first" ]]; then first="$word"
    elif [[ -z "$second" ]]; then second="$word"
    fi
  done
  local name="$first"
  if [[ -n "$second" && " $(_switchyard_verbs "$first") " == *" $second "* ]]; then name="$first $second"
  elif [[ -n "$first" && -z "$(_switchyard_flags_known "$first")" ]]; then name="$first list"
  fi
  if [[ "$cur" != -* ]] && _switchyard_takes_value "$prev"; then list="$(_switchyard_values "$name $prev")"
  elif [[ "$cur" == -* ]]; then list="$(_switchyard_flags "\${name:-serve}")"
  elif [[ -z "$first" ]]; then list=${quotedWord([...words.map(({ word }) => word), 'help'].join(' '))}
  elif [[ -z "$second" ]]; then list="$(_switchyard_verbs "$first") $(_switchyard_values "$first")"
  elif [[ "$name" == "$first $second" ]]; then list="$(_switchyard_values "$name")"
  fi
  mapfile -t COMPREPLY < <(compgen -W "$list" -- "$cur")
}
_switchyard_flags_known() {
  case "$1" in
    ${words
      .filter(({ word }) => commands.some(({ name }) => name === word))
      .map(({ word }) => word)
      .join('|')}) printf known ;;
  esac
}
complete -o default -F _switchyard switchyard`
}

/** `sources update --enabled` → its values. */
function valuesByFlag(commands: readonly Command[]): [name: string, flag: Flag][] {
  return commands.flatMap((command) =>
    flagsOf(command).flatMap(([name, flag]): [string, Flag][] => (flag.values === undefined ? [] : [[`${command.name} --${name}`, flag]])),
  )
}

function valueFlags(commands: readonly Command[]): string[] {
  const names = [undefined, ...commands].flatMap((command) => flagsOf(command).filter(([, { placeholder }]) => placeholder !== null))
  return [...new Set(names.map(([name]) => name))]
}

/** The text in single quotes, for a shell. */
function quotedWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

// ── zsh ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

function zshScript(commands: readonly Command[]): string {
  const words = firstWords(commands)
  const described = (rows: readonly (readonly [string, string])[]): string =>
    rows.map(([word, text]) => `    ${quotedWord(`${word.replaceAll(':', '\\:')}:${text}`)}`).join('\n')
  const argumentsOf = (command: Command): string => {
    const flags = flagsOf(command).map(([name, { placeholder, description, values, many }]) => {
      const text = description.replaceAll(/[[\]:]/g, '\\$&')
      const value = placeholder === null ? '' : `:${placeholder}:${values === undefined ? '_files' : `(${values.join(' ')})`}`
      return `    ${quotedWord(`${many ? '*' : ''}--${name}${placeholder === null ? '' : '='}[${text}]${value}`)}`
    })
    const first = firstValues(command)
    const rest = first.length > 0 ? `1:argument:(${first.join(' ')})` : '*:argument:_files'
    return [
      '  _arguments \\',
      ...[...flags, `    ${quotedWord(rest)}`].map((line, at, all) => (at === all.length - 1 ? line : `${line} \\`)),
    ].join('\n')
  }
  const functionOf = (name: string): string => `_switchyard_${name.replaceAll(/[ -]/g, '_')}`
  const groups = words.map(({ word, verbs }) => {
    const own = commands.find(({ name }) => name === word) ?? commands.find(({ name }) => name === `${word} list`)
    const alone = own === undefined ? '  _message command' : `  ${functionOf(`run ${own.name}`)}`
    if (verbs.length === 0) return `${functionOf(word)}() {\n${alone}\n}`
    return `${functionOf(word)}() {
  local -a verbs=(
${described(verbs.map(({ verb, summary }) => [verb, summary] as const))}
  )
  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then _describe -t commands ${quotedWord(word)} verbs; return; fi
  case $words[2] in
${verbs.map(({ verb }) => `    ${verb}) shift words; (( CURRENT-- )); ${functionOf(`run ${word} ${verb}`)}; return ;;`).join('\n')}
  esac
${alone}
}`
  })
  return `#compdef switchyard
# Completion of switchyard for zsh: switchyard completion zsh > "\${fpath[1]}/_switchyard"
${commands.map((command) => `${functionOf(`run ${command.name}`)}() {\n${argumentsOf(command)}\n}`).join('\n')}
${groups.join('\n')}
_switchyard() {
  local -a commands=(
${described(words.map(({ word, summary }) => [word, summary] as const))}
  )
  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then _describe -t commands command commands; return; fi
  case $words[2] in
${words.map(({ word }) => `    ${word}) shift words; (( CURRENT-- )); ${functionOf(word)}; return ;;`).join('\n')}
  esac
  ${functionOf('run serve')}
}
if [[ $funcstack[1] == _switchyard ]]; then _switchyard "$@"; else compdef _switchyard switchyard; fi`
}

// ── fish ────────────────────────────────────────────────────────────────────────────────────────────────────────────

function fishScript(commands: readonly Command[]): string {
  const words = firstWords(commands)
  const firsts = words.map(({ word }) => word).join(' ')
  const text = (description: string): string => `'${description.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
  const flagLine = (condition: string, [name, { placeholder, description, values }]: [string, Flag]): string =>
    `complete -c switchyard${condition === '' ? '' : ` -n ${text(condition)}`} -l ${name}${placeholder === null ? '' : values === undefined ? ' -r' : ` -x -a ${text(values.join(' '))}`} -d ${text(description)}`
  const lines = [
    '# Completion of switchyard for fish: switchyard completion fish > ~/.config/fish/completions/switchyard.fish',
    ...flagsOf(undefined).map((flag) => flagLine('', flag)),
  ]
  for (const { word, summary, verbs } of words) {
    lines.push(`complete -c switchyard -f -n 'not __fish_seen_subcommand_from ${firsts}' -a ${word} -d ${text(summary)}`)
    const names = verbs.map(({ verb }) => verb).join(' ')
    for (const { verb, summary } of verbs)
      lines.push(
        `complete -c switchyard -f -n '__fish_seen_subcommand_from ${word}; and not __fish_seen_subcommand_from ${names}' -a ${verb} -d ${text(summary)}`,
      )
  }
  for (const command of commands) {
    const [first = '', verb] = command.name.split(' ')
    const condition = `__fish_seen_subcommand_from ${first}${verb === undefined ? '' : `; and __fish_seen_subcommand_from ${verb}`}`
    const values = firstValues(command)
    if (values.length > 0) lines.push(`complete -c switchyard -f -n ${text(condition)} -a ${text(values.join(' '))}`)
    for (const flag of Object.entries(command.flags ?? {})) lines.push(flagLine(condition, flag))
  }
  return lines.join('\n')
}
