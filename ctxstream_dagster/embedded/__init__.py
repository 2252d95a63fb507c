"""A small real model on the processor behind Ollama's native routes, for machines without Ollama."""
