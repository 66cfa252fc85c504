// The tabs of the settings: their names in the address, and what they are about. Also what the search finds.

export const SETTINGS_TABS = [
  { name: 'tokens', label: 'Tokens', about: 'Access to the control API and this dashboard.' },
  { name: 'people', label: 'People', about: 'Who has logged in with single sign-on, and their sessions.' },
  { name: 'oauth', label: 'OAuth applications', about: 'Applications that can get access tokens for sources, and their public keys.' },
  { name: 'audit', label: 'Audit log', about: 'Who changed what, and when.' },
  {
    name: 'configuration',
    label: 'Configuration',
    about: 'Sources, destinations and OAuth applications as one file, for version control or another installation.',
  },
  { name: 'nodes', label: 'Nodes', about: 'The processes of this installation.' },
  { name: 'about', label: 'About', about: 'Version, store, diagnostics and backups.' },
] as const
