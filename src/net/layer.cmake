# The test of the TLS client makes each of our allocations fail in turn. The test target is created
# after this file is included.
cmake_language(DEFER CALL target_link_options net_tls_client_test PRIVATE
    -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup)

vigil_corpus(net tls)
