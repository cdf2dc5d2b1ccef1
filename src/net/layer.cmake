vigil_failing_memory(net_tls_client_test)

vigil_corpus(net tls)
