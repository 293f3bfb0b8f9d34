"""How the bundled demo pair is made: corpus, tokenizer, target, EAGLE-3 draft, figures."""
