"""The verbs: one module each, a function of values that answers with a `Result`. Import them from `modelwright`."""
