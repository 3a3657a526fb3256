/** How a state table is made, but for its name: what StreamApplication says of it on AWS. */
export const stateTable = {
  KeySchema: [
    { AttributeName: 'pk', KeyType: 'HASH' as const },
    { AttributeName: 'sk', KeyType: 'RANGE' as const },
  ],
  AttributeDefinitions: [
    { AttributeName: 'pk', AttributeType: 'S' as const },
    { AttributeName: 'sk', AttributeType: 'S' as const },
  ],
  BillingMode: 'PAY_PER_REQUEST' as const,
}
