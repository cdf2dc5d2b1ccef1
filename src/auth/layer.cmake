vigil_bench(auth)
vigil_corpus(auth token)
