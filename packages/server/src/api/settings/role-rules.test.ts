// The rules of SWITCHYARD_OIDC_ROLES as pure functions: which texts are accepted, which claims match, and what a rule gives.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { claimOf, grantOf, isWithin, lesserOf, matchingRule, parseRoleMapping, type RoleRule } from './role-rules.ts'

const RULE: RoleRule = { claim: 'groups', value: 'data-eng', role: 'editor', sources: ['shop'] }

test('rules are a list in JSON or YAML, and a problem names the entry but quotes no value', () => {
  assert.deepEqual(parseRoleMapping(JSON.stringify([RULE])), { value: [RULE] })
  assert.deepEqual(parseRoleMapping('- { claim: groups, value: data-eng, role: editor, sources: [shop] }'), { value: [RULE] })
  const cases: [unknown, RegExp][] = [
    [{ ...RULE, role: 'owner' }, /entry 2 needs a role/],
    [{ ...RULE, role: 'admin' }, /entry 2 has the role admin, so its sources must be "all"/],
    [{ ...RULE, sources: [] }, /entry 2 needs sources/],
    [{ ...RULE, sources: 'shop' }, /entry 2 needs sources/],
    [{ claim: 'groups', value: 'secret-value', role: 'viewer' }, /entry 2 needs sources/],
    [{ ...RULE, value: 7 }, /entry 2 needs a value as text/],
    [{ ...RULE, claim: '' }, /entry 2 needs a claim/],
    [{ ...RULE, group: 'x' }, /entry 2 has the unknown field "group"/],
    [null, /entry 2 is not an object/],
  ]
  for (const [entry, expected] of cases) {
    const problem = String((parseRoleMapping(JSON.stringify([RULE, entry])) as { problem?: string }).problem)
    assert.match(problem, expected)
    assert.doesNotMatch(problem, /secret-value/)
  }
  for (const text of ['', '[]', '{}', 'x', '[', 'a: &a [*a]', `[${'x,'.repeat(501)}x]`])
    assert.ok('expected' in parseRoleMapping(text), text)
})

test('a claim may be a path, and nothing but own properties is found', () => {
  const claims = JSON.parse('{"realm_access":{"roles":["a"]},"https://x.example/roles":["b"],"__proto__":{"x":"y"}}')
  assert.deepEqual(claimOf(claims, 'realm_access.roles'), ['a'])
  assert.deepEqual(claimOf(claims, 'https://x.example/roles'), ['b'], 'a name with dots')
  for (const path of ['realm_access.roles.length', 'realm_access.roles.0', 'constructor', 'toString.name', 'realm_access.', ''])
    assert.equal(claimOf(claims, path), undefined, path)
})

test('the first rule that matches applies, and the ID token comes before userinfo', () => {
  const path: RoleRule = { ...RULE, claim: 'realm_access.roles', role: 'viewer', sources: 'all' }
  const admin: RoleRule = { claim: 'groups', value: 'admins', role: 'admin', sources: 'all' }
  const both = { groups: ['admins', 'data-eng'], realm_access: { roles: ['data-eng'] } }
  assert.equal(matchingRule([RULE, admin], [both]), RULE)
  assert.equal(matchingRule([admin, RULE], [both]), admin)
  assert.equal(matchingRule([path], [both]), path)
  assert.equal(matchingRule([admin], [{ groups: [] }, { groups: ['admins'] }]), null, 'the ID token says that there is none')
  assert.equal(matchingRule([admin], [{}, { groups: 'admins' }]), admin)
  const email: RoleRule = { ...admin, claim: 'email', value: 'ada@example.com' }
  const ada = { email: 'ada@example.com' }
  assert.equal(matchingRule([email], [ada, { email_verified: true }]), null, 'verified by the same response, or not at all')
  assert.equal(matchingRule([email], [{ ...ada, email_verified: true }]), email)
})

test('a rule gives the sources that exist, by id or by a name that only one has', () => {
  const known = new Map(
    [
      ['src_1', 'shop'],
      ['src_2', 'twin'],
      ['src_3', 'twin'],
      ['system', 'system'],
    ].map(([id = '', name = '']) => [id, { id, name }]),
  )
  const problems: string[] = []
  const grant = grantOf({ ...RULE, sources: ['shop', 'src_1', 'src_3', 'twin', 'none', 'system'] }, known, (...problem) =>
    problems.push(problem.join(' ')),
  )
  assert.deepEqual(grant, { role: 'editor', sources: ['src_1', 'src_3'] })
  assert.deepEqual(problems, ['twin ambiguous', 'none unknown', 'system unknown'])
})

test('the lesser of two grants has the lower role and the sources of both', () => {
  const editor = { role: 'editor', sources: ['src_1', 'src_2'] } as const
  const viewer = { role: 'viewer', sources: 'all' } as const
  assert.deepEqual(lesserOf(editor, viewer), { role: 'viewer', sources: ['src_1', 'src_2'] })
  assert.deepEqual(lesserOf(viewer, editor), { role: 'viewer', sources: ['src_1', 'src_2'] })
  assert.deepEqual(lesserOf(editor, { role: 'admin', sources: ['src_2', 'src_3'] }), { role: 'editor', sources: ['src_2'] })
  assert.equal(isWithin({ role: 'viewer', sources: ['src_1'] }, editor), true)
  for (const wanted of [
    { role: 'admin', sources: ['src_1'] },
    { role: 'editor', sources: 'all' },
    { role: 'viewer', sources: ['src_3'] },
  ] as const)
    assert.equal(isWithin(wanted, editor), false)
})
