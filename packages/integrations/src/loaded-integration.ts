// An integration with its settings. It calls the library's own execution, so that an action does what it does for Segment; around it are the
// deadline, copies of everything that the action could change, and new access tokens.

import type { JsonObject } from '@switchyard/protocol'
import { StateDraft } from './action-state.ts'
import { batches } from './batching.ts'
import { compiledMapping, TooMuch, useCompiled } from './bounded-mapping.ts'
import type { CompiledMapping } from './compiled-mapping.ts'
import { type Definition, SYNC_MODE_FIELD } from './definitions.ts'
import { constantsIn, failureIn, libraryField, type Page, pageOf } from './dynamic-fields/choices.ts'
import { batchFailure, type Failure, failed, failureOf, type MultiStatus, reportedFailure, timedOut } from './failures.ts'
import { featuresOf } from './feature-flags.ts'
import { definitionSettings, hostSettings } from './host-settings.ts'
import { type HostValues, hostValuesOf, withHostValues } from './host-values.ts'
import type {
  FieldLookup,
  FoundChoices,
  Integration,
  OAuthSettings,
  RunOptions,
  RunResult,
  Step,
  StepResult,
  Tokens,
  Transaction,
} from './integration.ts'
import { type ActionInput, createDestination, type Deleting, type LibraryAction, type LibraryDestination, library } from './library.ts'
import { OAuthTokens, type Renew } from './oauth.ts'
import { runLogger } from './recording/log-capture.ts'
import { RunTrace, runs } from './recording/run-trace.ts'
import { addMappingSecrets, HIDDEN, type Scrubber, settingsScrubber } from './recording/scrub.ts'

/** Messages of an action without `performBatch`, or batches, that run at once. */
const MAX_PARALLEL = 8

/** Most actions work without it; a few do not. */
const NO_STATS = { observe() {}, _name() {}, _tags() {}, incr() {}, set() {}, histogram() {} }

interface Execution {
  positions: readonly number[]
  messages: readonly JsonObject[]
  /** Whether the action may change the messages. */
  isOwned: boolean
  trace: RunTrace
  transaction: Transaction
  draft: StateDraft | null
}

type Attempt = (positions: readonly number[]) => Promise<(Failure | null)[]>

export class LoadedIntegration implements Integration {
  readonly erase: Integration['erase']
  readonly transactional: ReadonlySet<string>
  readonly stateful: ReadonlySet<string>
  readonly #destination: LibraryDestination
  readonly #settings: JsonObject
  readonly #settingsError: string | null
  readonly #hostValues: HostValues
  readonly #features: Readonly<Record<string, boolean>>
  readonly #scrubber: Scrubber
  readonly #scrubbedMappings = new WeakSet<JsonObject>()
  readonly #compiled = new WeakMap<JsonObject, { mode: unknown; mapping: CompiledMapping | null }>()
  readonly #tokens: OAuthTokens | null

  /** `secrets` are the names of secret settings. */
  constructor(definition: Definition, settings: JsonObject, secrets: ReadonlySet<string>, onTokens: (tokens: Tokens) => void) {
    const destination = createDestination(definition)
    this.#destination = destination
    this.#scrubber = settingsScrubber(settings, new Set([...secrets, 'oauth']))
    const { slug } = definition
    const { oauth } = copied(settings)
    const own = definitionSettings(slug, copied(settings))
    this.#hostValues = hostValuesOf(slug, settings)
    const { tokenUrl } = hostSettings(slug)
    this.#features = featuresOf(slug, settings)
    // As the library does for every message: it also converts values to the types of the definition.
    const error = validationError(destination, own)
    this.#settingsError = error === null ? null : this.#scrubber.text(error)
    this.#settings = own
    const { scheme } = definition.authentication ?? {}
    const isOAuth = scheme === 'oauth2' || scheme === 'oauth-managed'
    const renew: Renew = (data) => destination.refreshAccessToken(copied(own), data)
    this.#tokens = isOAuth ? new OAuthTokens((oauth ?? {}) as Partial<OAuthSettings>, renew, this.#scrubber, onTokens, tokenUrl) : null
    const actions = Object.keys(destination.actions)
    this.transactional = new Set(actions.filter((slug) => reads(destination.actions[slug], /\btransactionContext\b/)))
    this.stateful = new Set(actions.filter((slug) => reads(destination.actions[slug], /\bstateContext\b/)))
    const { onDelete, extendRequest } = definition as Deleting
    this.erase =
      onDelete === undefined
        ? null
        : (message, options) => this.#erase({ onDelete, ...(extendRequest && { extendRequest }) }, message, options)
  }

  async run(step: Step, messages: readonly JsonObject[], options: RunOptions): Promise<RunResult> {
    this.#hideSecretsOf(step.mapping)
    const action = Object.hasOwn(this.#destination.actions, step.action) ? this.#destination.actions[step.action] : undefined
    if (action === undefined) return everyMessage(messages, failed('integration_failed', `The integration has no action "${step.action}".`))
    const { transactions } = options
    const isSingly = transactions !== undefined && step.mapping.enable_batching !== true
    const groups = isSingly ? messages.map((_, position) => [position]) : groupsOf(step, action, messages)
    // An attempt with a new access token needs the messages as they were.
    const isOwned = options.ownsMessages === true && this.#tokens === null
    const drafts = new Map<StateDraft, readonly number[]>()
    const result = await this.#traced(messages, groups, options, (trace) => {
      const attempt: Attempt = async (positions) => {
        // The messages of a batch share nothing: a value of one must not reach the others.
        const own = positions.length === 1 ? transactions?.[positions[0] as number] : undefined
        const transaction: Transaction = own ?? new Map()
        const draft = options.state === undefined ? null : new StateDraft(options.state)
        if (draft !== null) drafts.set(draft, positions)
        let failures: (Failure | null)[] | null = null
        try {
          failures = await this.#executed(step, action, { positions, messages, isOwned, trace, transaction, draft })
        } finally {
          if (failures?.includes(null) !== true) draft?.discard()
        }
        // Nothing was sent: one message reads too much, which must not fail the others.
        return failures ?? (await Promise.all(positions.map((position) => this.#attempted([position], trace, attempt)))).flat()
      }
      return attempt
    })
    // A run that the deadline has ended is repeated, so none of its entries are kept.
    const state = [...drafts].flatMap(([draft, positions]) => {
      const isKept = positions.some((position) => result.results[position]?.kind === 'success')
      if (!isKept) draft.discard()
      return draft.keep(positions.length === 1 ? (positions[0] as number) : null)
    })
    return state.length === 0 ? result : { ...result, state }
  }

  /** Null if a message of a batch reads too much. Rejects if a single message fails. */
  async #executed(
    step: Step,
    action: LibraryAction,
    { positions, messages, isOwned, trace, transaction, draft }: Execution,
  ): Promise<(Failure | null)[] | null> {
    const input = { ...this.#input(step, action, trace, transaction), ...(draft !== null && { stateContext: draft.context }) }
    const events = positions.map((position) => (isOwned ? (messages[position] as JsonObject) : copied(messages[position] as JsonObject)))
    const [event] = events as [JsonObject]
    if (events.length === 1) {
      const outputs = await this.#destination.executeAction(step.action, { ...input, event })
      return [reportedFailure(outputs, trace, positions[0] as number)]
    }
    const answers = await this.#destination.executeBatch(step.action, { ...input, events }).catch(nullIfTooMuch)
    return answers && positions.map((position, index) => batchFailure(answers[index] as MultiStatus | undefined, trace, position))
  }

  async choices({ action: slug, field, mapping, syncMode, page }: FieldLookup, options: RunOptions): Promise<FoundChoices> {
    this.#hideSecretsOf(mapping)
    let found: Page = { choices: [], nextPage: null }
    const action = Object.hasOwn(this.#destination.actions, slug) ? this.#destination.actions[slug] : undefined
    if (action === undefined) return { result: failed('integration_failed', `The integration has no action "${slug}".`), ...found }
    if (options.renewsTokens === false && this.#tokens?.accessToken === null)
      return {
        result: failed('invalid_authentication', 'There is no access token yet. One is requested after the destination is saved.'),
        ...found,
      }
    const name = libraryField(field, action.definition.dynamicFields)
    const { results } = await this.#traced([{}], [[0]], options, (trace) => async () => {
      const { mapping: _, ...input } = this.#input({ action: slug, mapping: {} }, action, trace, new Map())
      const answer = await this.#destination.executeDynamicField(slug, name, { ...input, payload: constantsIn(mapping), syncMode, page })
      const failure = failureIn(answer, trace)
      if (failure === null) found = pageOf(answer, trace)
      return [failure]
    })
    return { result: results[0] as StepResult, ...found }
  }

  /** As the library does it, with the deadline of the run. */
  async #erase({ onDelete, extendRequest }: Deleting, message: JsonObject, options: RunOptions): Promise<RunResult> {
    const { userId, anonymousId } = message
    return await this.#traced([message], [[0]], options, (trace) => async () => {
      const data = { payload: { userId, anonymousId }, settings: copied(this.#settings), auth: this.#auth(trace) }
      const request = library().createRequestClient(extendRequest?.({ ...data }) ?? {}, { signal: trace.signal })
      await onDelete?.(request, data)
      return [null]
    })
  }

  /** Runs the groups until all have a result or the deadline is over. Never rejects. */
  async #traced(
    messages: readonly JsonObject[],
    groups: number[][],
    options: RunOptions,
    attempts: (trace: RunTrace) => Attempt,
  ): Promise<RunResult> {
    if (this.#settingsError !== null) return everyMessage(messages, failed('integration_failed', this.#settingsError))
    const isPreview = options.isPreview === true
    const trace = new RunTrace({
      signal: options.signal,
      isPreview,
      isDetailed: isPreview || options.isDetailed === true,
      renewsTokens: !isPreview && options.renewsTokens !== false,
      scrubber: this.#scrubber,
    })
    const results: StepResult[] = messages.map(timedOut)
    const attempt = attempts(trace)
    let next = 0
    const worker = async (): Promise<void> => {
      for (let group = groups[next++]; group !== undefined && !options.signal.aborted; group = groups[next++]) {
        const failures = await this.#authorized(group, trace, attempt)
        // After the deadline, the results have been returned.
        group.forEach((position, index) => {
          results[position] = failures[index]?.result ?? { kind: 'success' }
        })
      }
    }
    const deadline = whenAborted(options.signal)
    await Promise.race([Promise.all(Array.from({ length: Math.min(MAX_PARALLEL, groups.length) }, worker)), deadline.promise])
    deadline.dispose()
    if (options.signal.aborted) trace.abortRequests()
    return { results: [...results], ...trace.finish() }
  }

  /** Repeats, once, what was refused because of its access token. */
  async #authorized(group: readonly number[], trace: RunTrace, attempt: Attempt): Promise<(Failure | null)[]> {
    const tokens = this.#tokens
    if (tokens === null || !trace.renewsTokens) return await this.#attempted(group, trace, attempt)
    if (tokens.accessToken === null) {
      const failure = await this.#renewed(tokens, null, group, trace)
      if (failure !== null) return group.map(() => failure)
    }
    const used = tokens.accessToken
    const failures = await this.#attempted(group, trace, attempt)
    const refused = group.filter((_, index) => failures[index]?.isUnauthorized === true)
    if (refused.length === 0) return failures
    const failure = await this.#renewed(tokens, used, refused, trace)
    const repeated = failure === null ? await this.#attempted(refused, trace, attempt) : refused.map(() => failure)
    return group.map((position, index) =>
      refused.includes(position) ? (repeated[refused.indexOf(position)] as Failure | null) : (failures[index] as Failure | null),
    )
  }

  async #attempted(positions: readonly number[], trace: RunTrace, attempt: Attempt): Promise<(Failure | null)[]> {
    try {
      return await withHostValues(this.#hostValues, () => runs.run({ trace, positions }, attempt, positions))
    } catch (error) {
      return positions.map((position) => failureOf(error, trace, position))
    }
  }

  /** Null if there is a new token. */
  async #renewed(tokens: OAuthTokens, used: string | null, positions: readonly number[], trace: RunTrace): Promise<Failure | null> {
    try {
      await withHostValues(this.#hostValues, () => runs.run({ trace, positions }, () => tokens.renew(used)))
      return null
    } catch (error) {
      const failure = failureOf(error, trace, positions[0] as number)
      const { result } = failure
      // The token endpoint refused the refresh token or the client, so a retry cannot help.
      const isRefused =
        result.kind === 'status' && result.status >= 400 && result.status < 500 && result.status !== 408 && result.status !== 429
      return isRefused
        ? { ...failure, result: failed('invalid_authentication', `The access token could not be renewed: ${result.message}`) }
        : failure
    }
  }

  #input(step: Step, action: LibraryAction, trace: RunTrace, transaction: Transaction): ActionInput {
    return {
      mapping: this.#mapping(step, action),
      settings: copied(this.#settings),
      auth: this.#auth(trace),
      // A preview keeps nothing: its answers are made up.
      subscriptionMetadata: step.ids === undefined || trace.isPreview ? {} : metadataOf(step.ids, step.action),
      features: { ...this.#features },
      transactionContext: transactionContext(transaction),
      statsContext: { statsClient: NO_STATS, tags: [] },
      logger: runLogger,
      // With a signal, the library sets no timeout of its own.
      signal: trace.signal,
    }
  }

  /** A copy of its own for each run, because actions can read and change it. */
  #mapping(step: Step, action: LibraryAction): JsonObject {
    const syncMode = syncModeOf(step, action)
    const mapping = { ...copied(step.mapping), ...syncMode }
    let known = this.#compiled.get(step.mapping)
    if (known === undefined || known.mode !== syncMode[SYNC_MODE_FIELD]) {
      known = { mode: syncMode[SYNC_MODE_FIELD], mapping: compiledMapping({ ...copied(step.mapping), ...syncMode }) }
      this.#compiled.set(step.mapping, known)
    }
    if (known.mapping !== null) useCompiled(mapping, known.mapping)
    return mapping
  }

  #auth({ isPreview }: RunTrace): object {
    const { accessToken = null, refreshToken } = this.#tokens ?? {}
    return { accessToken: accessToken ?? (isPreview ? HIDDEN : undefined), refreshToken, refreshTokenUrl: undefined }
  }

  #hideSecretsOf(mapping: JsonObject): void {
    if (this.#scrubbedMappings.has(mapping)) return
    this.#scrubbedMappings.add(mapping)
    addMappingSecrets(this.#scrubber, mapping)
  }
}

/** Some actions fail without a sync mode. Segment's app adds it to the mapping when a subscription is saved. */
function syncModeOf({ mapping, syncMode }: Step, { definition }: LibraryAction): JsonObject {
  const mode = syncMode ?? mapping[SYNC_MODE_FIELD] ?? definition.syncMode?.default
  return definition.syncMode === undefined || mode === undefined ? {} : { [SYNC_MODE_FIELD]: mode }
}

/** Shows in the parameters that the action reads. */
function reads(action: LibraryAction | undefined, parameter: RegExp): boolean {
  const { perform } = action?.definition ?? {}
  return typeof perform === 'function' && parameter.test(String(perform))
}

function transactionContext(transaction: Transaction): object {
  return {
    get transaction() {
      return Object.fromEntries(transaction)
    },
    setTransaction: (key: string, value: string | number | null | undefined) => {
      if (value != null) transaction.set(key, String(value))
    },
  }
}

function metadataOf({ subscription, destination }: NonNullable<Step['ids']>, action: string): object {
  return { actionConfigId: subscription, destinationConfigId: destination, actionId: action }
}

function nullIfTooMuch(error: unknown): null {
  if (error instanceof TooMuch) return null
  throw error
}

function groupsOf(step: Step, action: LibraryAction, messages: readonly JsonObject[]): number[][] {
  const isBatch = messages.length > 1 && action.hasBatchSupport && step.mapping.enable_batching !== false
  return isBatch ? batches(step, action.definition.fields ?? {}, messages) : messages.map((_, position) => [position])
}

function everyMessage(messages: readonly JsonObject[], result: StepResult): RunResult {
  return { results: messages.map(() => result), requests: [], logs: null }
}

function validationError(destination: LibraryDestination, settings: object): string | null {
  try {
    destination.validateSettings(settings)
    return null
  } catch (error) {
    return `The integration does not accept the settings: ${error instanceof Error ? error.message : 'unknown error'}`
  }
}

/** Actions change what they are given. By hand, because structuredClone takes several times as long for the small objects here. */
function copied<T>(value: T): T {
  if (Array.isArray(value)) return value.map(copied) as T
  if (value === null || typeof value !== 'object') return value
  const copy: Record<string, unknown> = {}
  for (const key of Object.keys(value)) {
    // An own property of this name must not set the prototype.
    if (key === '__proto__')
      Object.defineProperty(copy, key, {
        value: copied((value as Record<string, unknown>)[key]),
        enumerable: true,
        configurable: true,
        writable: true,
      })
    else copy[key] = copied((value as Record<string, unknown>)[key])
  }
  return copy as T
}

function whenAborted(signal: AbortSignal): { promise: Promise<void>; dispose: () => void } {
  let dispose = (): void => {}
  const promise = new Promise<void>((resolve) => {
    const onAbort = (): void => resolve()
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', onAbort, { once: true })
    dispose = () => signal.removeEventListener('abort', onAbort)
  })
  return { promise, dispose }
}
