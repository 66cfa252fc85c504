// The ids of the rules for alerts, in the order in which they are listed. What each rule does is in alerts/rules.

export const RULE_IDS = [
  'destination_failing',
  'destination_held',
  'deliveries_expired',
  'backlog_growing',
  'source_silent',
  'source_volume_unusual',
  'messages_rejected',
  'plan_violated',
  'quarantine_expiring',
  'disk_almost_full',
  'node_lost',
  'deliveries_failed',
  'attempts_failing',
  'deliveries_delayed',
  'destination_stopped',
  'messages_quarantined',
  'ledger_unbalanced',
  'versions_differ',
  'order_backlog_growing',
  'warehouse_tables',
] as const
export type RuleId = (typeof RULE_IDS)[number]

/** How severe an incident is, from the most severe to the least. */
export const SEVERITIES = ['critical', 'warning', 'notice'] as const
export type Severity = (typeof SEVERITIES)[number]
