vigil_corpus(bolt reader)
