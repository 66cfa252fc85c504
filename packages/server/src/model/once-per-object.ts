// Settings are replaced as a whole and never changed, so what was compiled from them is valid for as long as they exist.

/** Returns a function that computes its result once for each object. */
export function oncePerObject<Key extends object, Value>(compute: (key: Key) => Value): (key: Key) => Value {
  const known = new WeakMap<Key, Value>()
  return (key) => {
    let value = known.get(key)
    if (value === undefined) {
      value = compute(key)
      known.set(key, value)
    }
    return value
  }
}
