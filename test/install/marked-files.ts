/**
 * The files that a Markdown page shows, each behind a comment such as `<!-- file: functions/orders/handler.ts -->`. What the
 * comment has in further lines comes before what is shown: imports, and what a fragment takes for granted.
 */
export function markedFiles(markdown: string): ReadonlyMap<string, string> {
  const blocks = markdown.matchAll(/<!-- file: (\S+)((?:(?!-->).)*)-->\n+```\w*\n(.*?)```/gs)
  return new Map([...blocks].map(([, path = '', hidden = '', shown = '']) => [path, hidden.trimStart() + shown]))
}
