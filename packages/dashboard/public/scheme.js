// Sets the colour scheme before anything is painted, so that a dark page does not flash white: the last choice, or the system's preference.
try {
  var chosen = localStorage.getItem('mantine-color-scheme-value')
  var dark = chosen === 'dark' || (chosen !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches)
  document.documentElement.setAttribute('data-mantine-color-scheme', dark ? 'dark' : 'light')
} catch {
  // If storage is not available, the page sets the scheme when it starts.
}
