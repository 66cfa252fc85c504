// What the tool offers for a field: values to choose a constant from, or names for the properties of an object. The tool is asked only when the user presses the button,
// because that takes time and needs valid credentials. Any other value can be typed.

import { Autocomplete, Button, type ComboboxItem, Group, type OptionsFilter, Select, Stack, Text } from '@mantine/core'
import { createContext, useContext, useState } from 'react'
import { type Answer, ApiProblem } from '../../api/client.ts'
import { SmallNote } from '../../components/styled.tsx'
import { type Choice, choiceConstant, choiceText, matchingChoices, withMore, withProperty } from './choices.ts'
import type { FieldSchema } from './definition.ts'

type Choices = Answer<'POST /api/destinations/{id}/choices'>

export interface Lookup {
  action: string
  field: string
  mapping: Record<string, unknown>
  syncMode?: string
  page?: string
}

/** The tool of a destination. */
export interface Tool {
  name: string
  /** Rejects with ApiProblem. */
  ask: (lookup: Lookup) => Promise<Choices>
}

/** Asks the tool about a field of the subscription that is edited; null where there is no tool to ask. */
export interface FieldTool {
  name: string
  ask: (field: string, page: string | undefined) => Promise<Choices>
}

export const ToolOfFields = createContext<FieldTool | null>(null)

interface ChosenProps {
  /** As the API names it: `list_id`, or `object_details.object_type`. */
  name: string
  value: string | number | boolean
  schema: FieldSchema
  input: { 'aria-label': string; error: string | null; readOnly: boolean; autoComplete: string }
  onValue: (value: string | number | boolean) => void
  tool: FieldTool
}

interface Loaded {
  choices: readonly Choice[]
  nextPage: string | null
}

/** `values`: of the field; `keys`: the names of its properties. */
export function useFieldTool(schema: FieldSchema | undefined, kind: 'values' | 'keys'): FieldTool | null {
  const tool = useContext(ToolOfFields)
  return schema?.['x-dynamic'] === kind ? tool : null
}

interface Loading {
  choices: readonly Choice[]
  nextPage: string | null
  problem: string | null
  isLoading: boolean
  isLoaded: boolean
  load: (page: string | undefined) => Promise<void>
}

function useChoices(name: string, tool: FieldTool): Loading {
  const [loaded, setLoaded] = useState<Loaded | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  const [isLoading, setLoading] = useState(false)
  const { choices = [], nextPage = null } = loaded ?? {}
  const load = async (page: string | undefined): Promise<void> => {
    setLoading(true)
    setProblem(null)
    try {
      const answer = await tool.ask(name, page)
      if (answer.error === null)
        setLoaded({ choices: page === undefined ? answer.choices : withMore(choices, answer.choices), nextPage: answer.nextPage })
      else setProblem(answer.error.message)
    } catch (error) {
      setProblem(error instanceof ApiProblem ? error.message : 'Could not reach the service.')
    } finally {
      setLoading(false)
    }
  }
  return { choices, nextPage, problem, isLoading, isLoaded: loaded !== null, load }
}

export function ChosenConstant({ name, value, schema, input, onValue, tool }: ChosenProps) {
  const loading = useChoices(name, tool)
  const { choices } = loading
  const filter: OptionsFilter = ({ options, search, limit }) => {
    const shown = new Set(matchingChoices(choices, search).map(({ value: each }) => String(each)))
    return (options as ComboboxItem[]).filter((option) => shown.has(option.value)).slice(0, limit)
  }
  const chosen = choices.find((choice) => String(choice.value) === String(value))
  return (
    <Stack gap={4}>
      <Autocomplete
        {...input}
        value={String(value)}
        onChange={(text) => onValue(choiceConstant(text, choices, schema))}
        data={choices.map((choice) => String(choice.value))}
        filter={filter}
        limit={200}
        openOnFocus={choices.length > 0}
        renderOption={({ option }) => <Option choice={choices.find((choice) => String(choice.value) === option.value)} />}
        description={chosen === undefined ? undefined : choiceText(chosen)}
        inputWrapperOrder={['label', 'input', 'description', 'error']}
        spellCheck={false}
      />
      {!input.readOnly && <LoadButtons title={input['aria-label']} tool={tool} loading={loading} />}
    </Stack>
  )
}

interface AddPropertyProps {
  name: string
  title: string
  /** The object as JSON. */
  text: string
  onText: (text: string) => void
  tool: FieldTool
}

/** Adds one of the properties that the tool has to an object that is edited as JSON. */
export function AddProperty({ name, title, text, onText, tool }: AddPropertyProps) {
  const loading = useChoices(name, tool)
  const { choices } = loading
  return (
    <Stack gap={4} mt={4}>
      {choices.length > 0 && (
        <Select
          aria-label={`Add a property to ${title}`}
          placeholder="Add a property"
          data={choices.map((choice) => ({ value: String(choice.value), label: choice.label }))}
          value={null}
          onChange={(key) => {
            const added = key === null ? null : withProperty(text, key)
            if (added !== null) onText(added)
          }}
          disabled={withProperty(text, '') === null}
          searchable
          limit={200}
          size="xs"
        />
      )}
      <LoadButtons title={title} tool={tool} loading={loading} />
    </Stack>
  )
}

interface LoadButtonsProps {
  title: string
  tool: FieldTool
  loading: Loading
}

function LoadButtons({ title, tool, loading: { choices, nextPage, problem, isLoading, isLoaded, load } }: LoadButtonsProps) {
  const count = choices.length === 0 ? `${tool.name} has no values.` : `${choices.length} ${choices.length === 1 ? 'value' : 'values'}`
  return (
    <>
      <Group gap="xs">
        <Button
          size="compact-xs"
          variant="default"
          loading={isLoading}
          onClick={() => void load(undefined)}
          aria-label={`Load from ${tool.name}: ${title}`}
        >
          Load from {tool.name}
        </Button>
        {nextPage !== null && (
          <Button
            size="compact-xs"
            variant="default"
            disabled={isLoading}
            onClick={() => void load(nextPage)}
            aria-label={`Load more: ${title}`}
          >
            Load more
          </Button>
        )}
        <SmallNote span role="status">
          {isLoading || problem !== null || !isLoaded ? '' : `${count}${nextPage === null ? '' : ' so far'}`}
        </SmallNote>
      </Group>
      {problem !== null && (
        <Text size="xs" c="var(--mantine-color-error)" role="alert" style={{ overflowWrap: 'anywhere' }}>
          {problem} You can enter the value by hand.
        </Text>
      )}
    </>
  )
}

function Option({ choice }: { choice: Choice | undefined }) {
  if (choice === undefined) return null
  return (
    <Stack gap={0} style={{ minWidth: 0 }}>
      <Text span size="sm" style={{ overflowWrap: 'anywhere' }}>
        {choice.label}
      </Text>
      <SmallNote span style={{ overflowWrap: 'anywhere' }}>
        {choice.label === String(choice.value)
          ? choice.description
          : [String(choice.value), choice.description].filter(Boolean).join(' · ')}
      </SmallNote>
    </Stack>
  )
}
