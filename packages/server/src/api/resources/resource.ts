// A resource of the control API, described once, field by field. From the description come the schemas of the requests that create and
// change it, the schema of responses, the response itself and the type of what is stored. The command line reads the same description.

import {
  type Infer,
  type ObjectOf,
  object,
  type PatchFields,
  patchOf,
  type Schema,
  type Simplify,
  shown,
  withDefault,
  withoutDefault,
} from '../schema.ts'

/** A field whose schema is not the same in all requests and responses. */
interface Forms {
  readonly create: Schema<unknown>
  /** The same as `create` if left out. */
  readonly patch?: Schema<unknown>
  readonly view: Schema<unknown>
}

interface Marks {
  /** Only responses have the field. */
  readonly readOnly?: true
  /** The field is missing in resources that earlier versions stored. */
  readonly addedLater?: true
}

type Field = (Schema<unknown> | Forms) & Marks
export type ResourceFields = Readonly<Record<string, Field>>

type FormOf<F, Form extends keyof Forms> =
  F extends Schema<unknown>
    ? F
    : F extends { readonly [K in Form]: infer S extends Schema<unknown> }
      ? S
      : F extends { readonly create: infer S extends Schema<unknown> }
        ? S
        : never
type RequestFields<F extends ResourceFields, Form extends 'create' | 'patch'> = {
  readonly [K in keyof F as F[K] extends { readOnly: true } ? never : K]: FormOf<F[K], Form>
}
type ViewFields<F extends ResourceFields> = { readonly [K in keyof F]: Schema<Infer<FormOf<F[K], 'view'>>> }

type Value<F> = DeepReadonly<Infer<FormOf<F, 'view'>>>
type DeepReadonly<T> = T extends (infer E)[]
  ? readonly DeepReadonly<E>[]
  : T extends object
    ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T

/** A resource as it is stored: times are in milliseconds. */
export type Stored<R extends { readonly fields: ResourceFields }> = StoredFields<R['fields']>
type StoredFields<F extends ResourceFields> = Simplify<
  { [K in keyof F as K extends 'createdAt' ? never : F[K] extends { addedLater: true } ? never : K]: Value<F[K]> } & {
    [K in keyof F as F[K] extends { addedLater: true } ? K : never]?: Value<F[K]>
  } & { createdAtMs: number }
>

export function readOnly<F extends Field>(field: F): F & { readonly readOnly: true } {
  return { ...field, readOnly: true }
}

export function addedLater<F extends Field>(field: F): F & { readonly addedLater: true } {
  return { ...field, addedLater: true }
}

export function resource<F extends ResourceFields>(fields: F, about: { title: string; description: string }) {
  const settable = (form: 'create' | 'patch') =>
    Object.fromEntries(
      Object.entries(fields)
        .filter(([, field]) => field.readOnly === undefined)
        .map(([name, field]) => [name, formOf(field, form)]),
    )
  const viewFields = Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [name, withoutDefault(formOf(field, 'view'))]),
  ) as unknown as ViewFields<F>
  const withFallbacks = Object.fromEntries(
    Object.entries(fields).map(([name, field]) => {
      const [created, view] = [formOf(field, 'create'), formOf(field, 'view')]
      return [name, 'fallback' in created ? withDefault(view, created.fallback) : view]
    }),
  )
  return {
    fields,
    viewFields,
    create: object(settable('create') as RequestFields<F, 'create'>),
    patch: object(patchOf(settable('patch')) as unknown as PatchFields<RequestFields<F, 'patch'>>),
    view: object(viewFields, about),
    /** Whether one of its texts contains another text, in upper or lower case. */
    hasText: (stored: StoredFields<F>, text: string): boolean => {
      const values = stored as Readonly<Record<string, unknown>>
      return Object.keys(fields).some((name) => typeof values[name] === 'string' && values[name].toLowerCase().includes(text.toLowerCase()))
    },
    /** The resource as responses show it. A field that is not stored has its default. */
    viewOf: (stored: StoredFields<F>) => shown(object(withFallbacks), stored) as ObjectOf<ViewFields<F>>,
  }
}

function formOf(field: Field, form: keyof Forms): Schema<unknown> {
  return 'parse' in field ? field : (field[form] ?? field.create)
}
