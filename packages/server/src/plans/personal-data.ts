// Guesses whether a name or a value may be personal data, or generated, such as an id. A learned plan is kept in git and shown to everybody, so
// it must contain neither. When in doubt the answer is yes: the plan then says less, and the person who reviews it can add what is missing.

const MAX_NAME_LENGTH = 100
const MAX_VALUE_LENGTH = 40
/** Names, numbers and ids of people have more digits than words such as `v2` or `24h`. */
const MAX_DIGITS = 3

/** The last word of the name of a property whose values are about one person or one thing. */
const PERSONAL_WORD =
  /^(.*name|.*mail|.*phone|.*address|.*number|id|uid|uuid|guid|ip|first|last|user|customer|person|author|owner|assignee|agent|contact|recipient|sender|company|street|city|town|zip|postcode|birthday|birthdate|dob|age|token|session|key|secret|password|mobile|tel|fax|ssn|iban|bic|vat|hash)$/

/** Whether values of this property may be about a person, by the name of the property. */
export function isPersonalProperty(name: string): boolean {
  const words = name
    .replaceAll(/([a-z\d])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .match(/[\p{L}\p{N}]+/gu)
  const last = words?.at(-1) ?? ''
  return PERSONAL_WORD.test(last) || PERSONAL_WORD.test(last.replace(/s$/, ''))
}

/** Whether a text may stand in a plan as one of the values that a property can have. */
export function isPlainValue(text: string): boolean {
  if (text.length === 0 || text.length > MAX_VALUE_LENGTH) return false
  // Only words, so no email address, URL, masked value or free text.
  if (!/^[\p{L}\p{N}][\p{L}\p{N} _.+&/-]*$/u.test(text) || hasManyDigits(text, MAX_DIGITS)) return false
  // Several words with capital letters look like the name of a person or a place.
  return !/^\p{Lu}[\p{L}.'-]*( \p{Lu}[\p{L}.'-]*)+$/u.test(text)
}

/** Whether the name of a property may stand in a plan. Names that every object has, such as `constructor`, may not. */
export function isPlainName(name: string): boolean {
  return name.length > 0 && name.length <= MAX_NAME_LENGTH && !(name in {}) && !isGenerated(name)
}

/** Whether a name contains an email address, a number or an id, so that there is one for each person or thing. */
export function isGenerated(name: string): boolean {
  return name.includes('@') || /[\da-f]{8}-[\da-f]{4}-/i.test(name) || hasManyDigits(name, MAX_DIGITS + 1)
}

function hasManyDigits(text: string, most: number): boolean {
  return text.replaceAll(/\P{Nd}/gu, '').length > most
}
