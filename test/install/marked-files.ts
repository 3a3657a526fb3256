/** The files that a Markdown page shows, each behind a comment such as `<!-- file: functions/orders/handler.ts -->`. */
export function markedFiles(markdown: string): ReadonlyMap<string, string> {
  const blocks = markdown.matchAll(/<!-- file: (\S+) -->\n+```\w*\n(.*?)```/gs)
  return new Map([...blocks].map(([, path = '', text = '']) => [path, text]))
}
