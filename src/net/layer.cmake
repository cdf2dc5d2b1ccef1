# The corpus of the fuzzer of TLS, as an ordinary test.
add_executable(net_tls_corpus ${CMAKE_SOURCE_DIR}/fuzz/fuzz_net_tls.c ${CMAKE_SOURCE_DIR}/fuzz/run_corpus.c)
target_link_libraries(net_tls_corpus PRIVATE vigil_net)
set_target_properties(net_tls_corpus PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit)
add_test(NAME net/tls/corpus COMMAND net_tls_corpus ${CMAKE_SOURCE_DIR}/fuzz/corpus/net_tls)
set_property(GLOBAL APPEND PROPERTY vigil_tests_of_net net_tls_corpus)
