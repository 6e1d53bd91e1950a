/**
 * The shapes of what the server sends, for editors and type checkers; nothing here runs.
 *
 * @typedef {{id: number, name: string, key: string|null, given: number, here: number, propagated: number, hidden?: boolean, in_file?: boolean}} ClassInfo
 * @typedef {{value: number|null, low: number|null, high: number|null}} Estimate
 * @typedef {{labels: number, error: number, low: number, high: number}} CurvePoint
 * @typedef {{state: "waiting"|"running"|"done"|"failed", revision: number, step: string, done: number, total: number,
 *   message: string, seconds: number|null, reused: string[]}} Propagation
 * @typedef {{voter: string, class: number|null}} Vote
 * @typedef {{name: string, accuracy: number|null, low: number, high: number, judged: number, votes: number}} VoterInfo
 * @typedef {{version: string, file: string, target: string, n_rows: number, columns: {name: string, kind: string}[],
 *   text_columns: string[], images_are_files: boolean, pictures: boolean, start: string,
 *   novel: {rows: number, share: Estimate|null}, voters: VoterInfo[], classes: ClassInfo[], revision: number, labels: number,
 *   unknown: number, can_undo: boolean, can_redo: boolean, saved_at: string|null, notes: string[],
 *   propagation: Propagation, error: Estimate|null, curve: CurvePoint[], changed: number, classes_found: number,
 *   goal: {error: number, labels: Estimate|null, known: boolean, message: string}|null, n_rounds: number, issues: number,
 *   session_id: string, suggested?: number}} State
 * @typedef {{class: number, probability: number}} ClassProbability
 * @typedef {{id: number, class: number, source: number, cells: string[], image: boolean}} NearRow
 * @typedef {{id: number, cells: string[], label: number|null, source: number, confidence: number,
 *   proposal: ClassProbability|null, probabilities: ClassProbability[],
 *   evidence: {source: string, class: number, probability: number}[], nearest: NearRow[], votes: Vote[], novelty: number|null,
 *   issue: {suggested: number, probability: number}|null, image: boolean, no_image: string, explained: boolean}} RowDetail
 * @typedef {{id: number, reason: string, note?: string, image?: boolean}} QueueEntry
 * @typedef {"suggest"|"unsure"|"class"|"search"|"lasso"|"novel"|"issues"|"unknown"} Order
 * @typedef {"label"|"accept"|"keep"|"remove"|"unknown"} LabelKind
 * @typedef {{color: string, rgb: [number, number, number], shape: number}} Marker
 */
export {};
