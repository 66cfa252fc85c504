// The editor itself: CodeMirror 6 with the extensions that this dashboard needs. Loaded lazily by code-editor.tsx, which is the only file
// that may import it. The styles that CodeMirror creates at run time carry the nonce of the page; colours follow the theme by themselves.

import {
  autocompletion,
  type Completion,
  type CompletionContext,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
} from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { javascript } from '@codemirror/lang-javascript'
import { json } from '@codemirror/lang-json'
import { bracketMatching, HighlightStyle, indentOnInput, StreamLanguage, syntaxHighlighting } from '@codemirror/language'
import { type Diagnostic, lintGutter, setDiagnostics } from '@codemirror/lint'
import { EditorState, type Text } from '@codemirror/state'
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'react'
import type { CodeProblem } from '../text/code-problems.ts'
import { nonce } from './theme.ts'

const color = (name: string, light: number, dark: number): string =>
  `light-dark(var(--mantine-color-${name}-${light}), var(--mantine-color-${name}-${dark}))`

const HIGHLIGHTING = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: color('grape', 9, 3) },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: color('teal', 9, 3) },
  // Mantine's darkest orange has too little contrast on white.
  {
    tag: [tags.number, tags.bool, tags.null],
    color: 'light-dark(var(--mantine-color-orange-light-color), var(--mantine-color-orange-3))',
  },
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: color('blue', 9, 3) },
  { tag: [tags.function(tags.variableName), tags.definition(tags.variableName)], color: color('indigo', 9, 3) },
  { tag: tags.comment, color: 'var(--mantine-color-dimmed)', fontStyle: 'italic' },
  { tag: tags.invalid, color: color('red', 9, 4) },
])

const LOOK = EditorView.theme({
  '&': {
    fontSize: '13px',
    backgroundColor: 'var(--mantine-color-body)',
    border: '1px solid var(--mantine-color-default-border)',
    borderRadius: 'var(--mantine-radius-md)',
    overflow: 'hidden',
  },
  '&.cm-focused': { outline: '2px solid var(--mantine-color-blue-5)', outlineOffset: '1px' },
  '.cm-scroller': { fontFamily: 'var(--mantine-font-family-monospace)', lineHeight: '1.55', overflow: 'auto', maxHeight: '60vh' },
  '.cm-content, .cm-gutter': { minHeight: '12em' },
  '.cm-content': { caretColor: 'var(--mantine-color-text)' },
  '.cm-cursor': { borderLeftColor: 'var(--mantine-color-text)' },
  '.cm-gutters': {
    backgroundColor: 'light-dark(var(--mantine-color-gray-0), var(--mantine-color-dark-6))',
    color: 'var(--mantine-color-dimmed)',
    borderRight: '1px solid var(--mantine-color-default-border)',
  },
  '.cm-activeLine': { backgroundColor: 'light-dark(rgba(0, 0, 0, 0.035), rgba(255, 255, 255, 0.045))' },
  '.cm-activeLineGutter': { backgroundColor: 'transparent', color: 'var(--mantine-color-text)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'light-dark(var(--mantine-color-blue-1), var(--mantine-color-blue-9))',
  },
  '&.cm-focused .cm-matchingBracket': { backgroundColor: 'light-dark(var(--mantine-color-teal-1), var(--mantine-color-teal-9))' },
  '.cm-gutter-lint': { width: '1.2em' },
  '.cm-tooltip': {
    backgroundColor: 'var(--mantine-color-body)',
    color: 'var(--mantine-color-text)',
    border: '1px solid var(--mantine-color-default-border)',
    borderRadius: 'var(--mantine-radius-sm)',
    maxWidth: 'min(480px, 90vw)',
  },
  '.cm-diagnostic': { whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' },
})

/** Colours for keys, strings, other values and comments. A full grammar of YAML would be a further package. */
const YAML = StreamLanguage.define<null>({
  name: 'yaml',
  startState: () => null,
  token(stream) {
    if (stream.eatSpace()) return null
    if (stream.match(/^#.*/)) return 'comment'
    if (stream.match(/^(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s#{}[\],:"'-][^{}[\],:]*?)(?=\s*:(?:\s|$))/)) return 'propertyName'
    if (stream.match(/^(?:"(?:[^"\\]|\\.)*"?|'[^']*'?)/)) return 'string'
    if (stream.match(/^(?:-?\d+(?:\.\d+)?|true|false|null|~)(?=\s*(?:[,}\]#]|$))/)) return 'number'
    if (stream.match(/^[^\s{}[\],:]+/)) return null
    stream.next()
    return null
  },
})

const WORDS =
  'all and any as asc between by case cast count cross date_trunc day desc distinct else end except exists false filter from full group having ilike in inner interval is join left like limit max min not null offset on or order outer over partition qualify right select sum then true union unnest using values when where with'
const SQL_WORDS: ReadonlySet<string> = new Set(WORDS.split(' '))

/** Colours for words, texts, numbers and comments. A full grammar of SQL would be a further package. */
const SQL = StreamLanguage.define<{ isComment: boolean }>({
  name: 'sql',
  startState: () => ({ isComment: false }),
  token(stream, state) {
    if (state.isComment) {
      if (stream.match(/^.*?\*\//)) state.isComment = false
      else stream.skipToEnd()
      return 'comment'
    }
    if (stream.eatSpace()) return null
    if (stream.match(/^--.*/)) return 'comment'
    if (stream.match('/*')) {
      state.isComment = true
      return 'comment'
    }
    if (stream.match(/^'(?:[^']|'')*'?/)) return 'string'
    if (stream.match(/^"(?:[^"]|"")*"?/)) return 'propertyName'
    if (stream.match(/^\d+(?:\.\d+)?/)) return 'number'
    const word = stream.match(/^[\p{L}_][\p{L}\p{N}_]*/u)
    if (Array.isArray(word)) return SQL_WORDS.has(word[0].toLowerCase()) ? 'keyword' : null
    stream.next()
    return null
  },
})
const SQL_COMPLETIONS: readonly Completion[] = [...SQL_WORDS].map((label) => ({ label, type: 'keyword' }))

interface CodeMirrorProps {
  label: string
  /** The id of the element that says how to leave the editor. */
  hintId: string
  language: 'javascript' | 'json' | 'yaml' | 'sql'
  value: string
  onChange: (value: string) => void
  problems: readonly CodeProblem[]
  isReadOnly?: boolean
  completions?: readonly Completion[]
}

const KEYS = [...closeBracketsKeymap, ...completionKeymap, ...defaultKeymap, ...historyKeymap]

export default function CodeMirror({
  label,
  hintId,
  language,
  value,
  onChange,
  problems,
  isReadOnly = false,
  completions,
}: CodeMirrorProps) {
  const place = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(null)
  const change = useRef(onChange)
  change.current = onChange
  const first = useRef(value)
  const offered = useRef(completions)
  offered.current = completions

  useEffect(() => {
    const editor = new EditorView({
      parent: place.current as HTMLDivElement,
      doc: first.current,
      extensions: [
        EditorView.cspNonce.of(nonce()),
        EditorState.readOnly.of(isReadOnly),
        EditorState.tabSize.of(2),
        EditorView.contentAttributes.of({
          'aria-label': label,
          'aria-describedby': hintId,
          // Focusable without it, but axe-core wants something focusable in a box that scrolls.
          tabindex: '0',
          ...(isReadOnly ? { 'aria-readonly': 'true' } : {}),
        }),
        EditorView.lineWrapping,
        lineNumbers(),
        lintGutter(),
        highlightSpecialChars(),
        highlightActiveLine(),
        highlightActiveLineGutter(),
        drawSelection(),
        history(),
        indentOnInput(),
        bracketMatching(),
        closeBrackets(),
        languageOf(language, () => offered.current ?? []),
        syntaxHighlighting(HIGHLIGHTING),
        LOOK,
        keymap.of([...KEYS, ...(isReadOnly ? [] : [indentWithTab])]),
        EditorView.updateListener.of((update) => {
          if (!update.docChanged) return
          first.current = update.state.doc.toString()
          change.current(first.current)
        }),
      ],
    })
    view.current = editor
    return () => editor.destroy()
  }, [label, hintId, language, isReadOnly])

  // A value from outside: a restored version, or discarded changes.
  useEffect(() => {
    const editor = view.current
    if (editor === null || value === first.current) return
    first.current = value
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value } })
  }, [value])

  useEffect(() => {
    const editor = view.current
    if (editor !== null)
      editor.dispatch(
        setDiagnostics(
          editor.state,
          problems.map((problem) => diagnosticOf(editor.state.doc, problem)),
        ),
      )
  }, [problems])

  return <div ref={place} />
}

function languageOf(language: CodeMirrorProps['language'], offered: () => readonly Completion[]) {
  if (language === 'sql') return [autocompletion({ override: [(context) => completed(context, offered())] }), SQL]
  return language === 'json' ? json() : language === 'yaml' ? YAML : javascript()
}

function completed(context: CompletionContext, own: readonly Completion[]) {
  const word = context.matchBefore(/[\p{L}\p{N}_."]+/u)
  if (word === null && !context.explicit) return null
  return { from: word?.from ?? context.pos, options: [...own, ...SQL_COMPLETIONS], validFor: /^[\p{L}\p{N}_."]*$/u }
}

/** From the column to the end of its line, or the whole line if there is no column. A position beyond the end is put at the end. */
function diagnosticOf(doc: Text, { line, column, message }: CodeProblem): Diagnostic {
  const { from, to, text } = doc.line(Math.min(Math.max(line, 1), doc.lines))
  const indent = text.length - text.trimStart().length
  const start = Math.min(from + (column === null ? indent : column - 1), to)
  return { from: start, to, severity: 'error', message }
}
