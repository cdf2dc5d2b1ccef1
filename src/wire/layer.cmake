# These tests make each of our allocations fail in turn. The test targets are created after this
# file is included.
cmake_language(DEFER CALL target_link_options wire_connection_test PRIVATE
    -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc)
cmake_language(DEFER CALL target_link_options wire_h2_roles_test PRIVATE
    -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc)
cmake_language(DEFER CALL target_link_options wire_h2_hpack_test PRIVATE
    -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc)
cmake_language(DEFER CALL target_link_options wire_http_http1_client_test PRIVATE
    -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc)
cmake_language(DEFER CALL target_link_options wire_grpc_client_test PRIVATE
    -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc)

cmake_language(DEFER CALL target_link_options wire_http_http2_client_test PRIVATE
    -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc)

vigil_corpus(wire client)
vigil_corpus(wire h2)
vigil_corpus(wire hpack)
vigil_corpus(wire http1)
vigil_corpus(wire http1_client)
