// The people who have logged in with single sign-on. What they may do is decided by the identity provider and the rules of the settings, so it
// cannot be changed here; their sessions can be ended.

import { sourceScope } from '../../api/resources/source-scope.ts'
import { boolean, integer, nullable, object, oneOf, string, time } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import { ROLES } from '../../store/store.ts'
import { recordAction } from '../routes/audit-entries.ts'
import { listAnswer, listQuery, pageAnswer, pageRequest } from '../routes/query.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'

const PERSON = object(
  {
    id: string(),
    subject: string({ description: 'The id of the person at the identity provider.' }),
    email: nullable(string({ description: 'As the provider named it. It does not identify the person.' })),
    name: nullable(string()),
    role: oneOf(ROLES, { description: 'The role that the rules gave when the person was last asked about.' }),
    sources: sourceScope('The sources of the person: `all`, or a list of ids.'),
    hasAccess: boolean({ description: 'False if the provider or the rules give the person nothing any more.' }),
    lastSeenAt: time({ description: 'When the person last used the service, to the minute.' }),
    checkedAt: time({ description: 'When the identity provider last confirmed the access of the person.' }),
    sessions: integer({ description: 'How many sessions the person has.' }),
  },
  { title: 'Person', description: 'A person who has logged in with single sign-on.' },
)

export function peopleRoutes({ store, access }: ControlParts): Route[] {
  return [
    route('GET', '/people', {
      summary: 'List people',
      access: { role: 'admin', sources: 'all' },
      description: 'Everybody who has logged in with single sign-on. Empty if it is not set up.',
      query: listQuery({}),
      answer: listAnswer(PERSON),
      async handle({ query }) {
        const { limit, cursor } = pageRequest('people', query)
        const people = access.singleSignOn?.people
        if (people === undefined) return { data: [], next: null }
        const found = await people.documents.people(cursor, limit + 1)
        const data = await Promise.all(
          found.slice(0, limit).map(async (person) => {
            const sessions = (await people.documents.sessions(person.id)).filter((session) => people.isLiveSession(session))
            return Object.assign(person, { sessions: person.hasAccess ? sessions.length : 0 })
          }),
        )
        return pageAnswer('people', { data, next: found.length > limit ? (data.at(-1)?.id ?? null) : null })
      },
    }),
    route('DELETE', '/people/:id/sessions', {
      summary: 'End all sessions of a person',
      access: { role: 'admin', sources: 'all' },
      description:
        'The sessions end on all nodes within a second. The person can log in again, unless the identity provider refuses. Tokens of the person keep working; revoke them with DELETE /api/tokens/{id}.',
      status: 204,
      errors: ['person_not_found'],
      async handle({ params, actor }) {
        const people = access.singleSignOn?.people
        const id = params['id'] ?? ''
        const person = /^per_[0-9a-f]{24}$/.test(id) ? await people?.documents.person(id) : undefined
        if (people === undefined || person === undefined) throw new ApiError('person_not_found')
        const sessions = await people.endAll(id)
        await access.endWatched()
        if (sessions > 0) await recordAction(store.history, { actor, action: 'person.end-sessions', subject: id, after: { sessions } })
      },
    }),
  ]
}
