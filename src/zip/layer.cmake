vigil_corpus(zip gunzip)
