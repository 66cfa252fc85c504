// A code editor: highlighting, line numbers, and errors at their line. CodeMirror is large, so it is loaded when an editor is first shown.

import { Input, Kbd } from '@mantine/core'
import { lazy, Suspense, useId } from 'react'
import type { CodeProblem } from '../text/code-problems.ts'
import { Loading } from './page.tsx'
import { SmallNote } from './styled.tsx'

const CodeMirror = lazy(() => import('./code-mirror.tsx'))

export interface CodeEditorProps {
  label: string
  description?: string
  language: 'javascript' | 'json' | 'yaml' | 'sql'
  value: string
  onChange: (value: string) => void
  problems: readonly CodeProblem[]
  isReadOnly?: boolean
  /** What is offered while a word is typed. */
  completions?: readonly { label: string; type: string }[]
}

export function CodeEditor({ label, description, ...editor }: CodeEditorProps) {
  const id = useId()
  return (
    <Input.Wrapper
      label={label}
      labelElement="div"
      description={description}
      inputWrapperOrder={['label', 'description', 'input', 'error']}
    >
      <Suspense fallback={<Loading lines={6} label={`Loading the editor: ${label}`} />}>
        <CodeMirror label={label} hintId={id} {...editor} />
      </Suspense>
      <SmallNote mt={4} id={id}>
        {editor.isReadOnly === true ? (
          'Read-only.'
        ) : (
          <>
            <Kbd size="xs">Tab</Kbd> indents. To leave the editor by keyboard, press <Kbd size="xs">Esc</Kbd>, then <Kbd size="xs">Tab</Kbd>
            .
          </>
        )}
      </SmallNote>
    </Input.Wrapper>
  )
}
