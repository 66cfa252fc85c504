export { allIntegrations } from './integrations.ts'
export { requestBudget, type StepBudget } from './judging-steps.ts'
export { MAX_BATCH_BYTES, MAX_BATCH_MESSAGES, MAX_MESSAGE_BYTES, MAX_MESSAGE_ID_LENGTH } from './limits.ts'
export type {
  AliasMessage,
  GroupMessage,
  GroupTraits,
  IdentifyMessage,
  Integrations,
  JsonObject,
  Message,
  MessageContext,
  MessageType,
  PageMessage,
  ScreenMessage,
  TrackMessage,
  UserTraits,
} from './messages.ts'
export { isMessageType, isObject, MESSAGE_TYPES } from './messages.ts'
export { type ParseResult, parseMessage } from './parse-message.ts'
export { createPlanJudge, type PlanFault, type PlanJudge, type PlanVerdict } from './plan-judge.ts'
export {
  type CompileSchema,
  type CreateSchemaCompiler,
  MAX_SCHEMA_VALUES,
  planSchemaCompiler,
  type SchemaError,
  type SchemaProblem,
  type SchemaValidator,
  schemaProblem,
  type ValidatorOptions,
} from './plan-schema.ts'
export { MAX_VIOLATIONS } from './plan-violations.ts'
export { REFUSALS, type Refusal, type RefusalCode, refusal } from './refusals.ts'
export { isoTime, parseTime } from './times.ts'
export {
  isPlannedType,
  PLAN_MODES,
  PLANNED_TYPES,
  type PlanMode,
  type PlannedType,
  type PlanRule,
  plannedField,
  ruleKey,
  type TrackingPlan,
  UNPLANNED_MODES,
  type UnplannedMode,
  VIOLATION_CODES,
  type Violation,
  type ViolationCode,
} from './tracking-plan.ts'
