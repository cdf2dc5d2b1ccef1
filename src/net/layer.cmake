vigil_corpus(net tls)
