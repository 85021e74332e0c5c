"""River learners per key on Apache Beam: sources, the stateful operator, sinks, and one command each."""
