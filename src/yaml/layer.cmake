vigil_corpus(yaml tree)
