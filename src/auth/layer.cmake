add_executable(auth_bench EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tests/auth_bench.c)
target_link_libraries(auth_bench PRIVATE vigil_auth)
set_target_properties(auth_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit)

# What the fuzzer has found interesting, as an ordinary test.
add_executable(auth_token_corpus ${CMAKE_SOURCE_DIR}/fuzz/fuzz_auth_token.c ${CMAKE_SOURCE_DIR}/fuzz/run_corpus.c)
target_link_libraries(auth_token_corpus PRIVATE vigil_auth)
set_target_properties(auth_token_corpus PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit)
add_test(NAME auth/token/corpus COMMAND auth_token_corpus ${CMAKE_SOURCE_DIR}/fuzz/corpus/auth_token)
set_property(GLOBAL APPEND PROPERTY vigil_tests_of_auth auth_token_corpus)
