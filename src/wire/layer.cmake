vigil_failing_memory(wire_connection_test wire_h2_roles_test wire_h2_hpack_test wire_http_http1_client_test
                     wire_http_http2_client_test wire_grpc_client_test)

vigil_corpus(wire client)
vigil_corpus(wire h2)
vigil_corpus(wire hpack)
vigil_corpus(wire http1)
vigil_corpus(wire http1_client)
# nghttp2 calls these back with arguments that the memory sanitizer takes for undefined.
if(NOT VIGIL_SANITIZE STREQUAL "memory")
    vigil_corpus(wire frames)
    vigil_corpus(wire frames_client)
endif()
