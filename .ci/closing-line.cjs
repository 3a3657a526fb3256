/** A jest reporter that closes the run with one plain line, whichever other reporters there are. */
module.exports = class ClosingLine {
  onRunComplete(_contexts, results) {
    const broken = results.testResults.filter((file) => file.testExecError).length
    this.line = `${results.numPassedTests} passed, ${results.numFailedTests + broken} failed${results.numPendingTests > 0 ? `, ${results.numPendingTests} skipped` : ''}`
    process.on('exit', () => process.stdout.write(`${this.line}\n`))
  }
}
