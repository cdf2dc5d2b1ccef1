vigil_corpus(store log)
vigil_bench(store)
