// A constant that can be chosen from the values that the tool offers: lists, channels, types of objects. The tool is asked when somebody wants it to be,
// because that takes time and needs valid credentials. Any other value can be typed.

import { Autocomplete, Button, type ComboboxItem, Group, type OptionsFilter, Stack, Text } from '@mantine/core'
import { createContext, useContext, useState } from 'react'
import { type Answer, ApiProblem } from '../../api/client.ts'
import { SmallNote } from '../../components/styled.tsx'
import { type Choice, choiceConstant, choiceText, matchingChoices, withMore } from './choices.ts'
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

export function useFieldTool(schema: FieldSchema | undefined): FieldTool | null {
  const tool = useContext(ToolOfFields)
  return schema?.['x-dynamic'] === 'values' ? tool : null
}

export function ChosenConstant({ name, value, schema, input, onValue, tool }: ChosenProps) {
  const [loaded, setLoaded] = useState<Loaded | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  const [isLoading, setLoading] = useState(false)
  const choices = loaded?.choices ?? []
  const title = input['aria-label']

  const load = async (page: string | undefined): Promise<void> => {
    setLoading(true)
    setProblem(null)
    try {
      const { choices: found, nextPage, error } = await tool.ask(name, page)
      if (error === null) setLoaded({ choices: page === undefined ? found : withMore(choices, found), nextPage })
      else setProblem(error.message)
    } catch (error) {
      setProblem(error instanceof ApiProblem ? error.message : 'The service could not be asked.')
    } finally {
      setLoading(false)
    }
  }

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
      {!input.readOnly && (
        <Group gap="xs">
          <Button
            size="compact-xs"
            variant="default"
            loading={isLoading}
            onClick={() => void load(undefined)}
            aria-label={`Load ${title} from ${tool.name}`}
          >
            Load from {tool.name}
          </Button>
          {loaded?.nextPage != null && (
            <Button
              size="compact-xs"
              variant="default"
              disabled={isLoading}
              onClick={() => void load(loaded.nextPage ?? undefined)}
              aria-label={`Load more ${title} from ${tool.name}`}
            >
              Load more
            </Button>
          )}
          <SmallNote span role="status">
            {isLoading || problem !== null || loaded === null
              ? ''
              : choices.length === 0
                ? `${tool.name} has no values.`
                : `${choices.length} ${choices.length === 1 ? 'value' : 'values'}${loaded.nextPage === null ? '' : ' so far'}`}
          </SmallNote>
        </Group>
      )}
      {problem !== null && (
        <Text size="xs" c="var(--mantine-color-error)" role="alert" style={{ overflowWrap: 'anywhere' }}>
          {problem} You can enter the value by hand.
        </Text>
      )}
    </Stack>
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
