# What the fuzzer has found interesting, as an ordinary test.
add_executable(store_log_corpus ${CMAKE_SOURCE_DIR}/fuzz/fuzz_store_log.c ${CMAKE_SOURCE_DIR}/fuzz/run_corpus.c)
target_link_libraries(store_log_corpus PRIVATE vigil_store)
set_target_properties(store_log_corpus PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit)
add_test(NAME store/log/corpus COMMAND store_log_corpus ${CMAKE_SOURCE_DIR}/fuzz/corpus/store_log)
set_property(GLOBAL APPEND PROPERTY vigil_tests_of_store store_log_corpus)

add_executable(store_bench EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tests/store_bench.c)
target_link_libraries(store_bench PRIVATE vigil_store)
set_target_properties(store_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit)
