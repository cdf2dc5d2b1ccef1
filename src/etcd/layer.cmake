# What the fuzzer has found interesting, as an ordinary test.
add_executable(etcd_txn_corpus ${CMAKE_SOURCE_DIR}/fuzz/fuzz_etcd_txn.c ${CMAKE_SOURCE_DIR}/fuzz/run_corpus.c)
target_link_libraries(etcd_txn_corpus PRIVATE vigil_etcd)
set_target_properties(etcd_txn_corpus PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit)
add_test(NAME etcd/txn/corpus COMMAND etcd_txn_corpus ${CMAKE_SOURCE_DIR}/fuzz/corpus/etcd_txn)
set_property(GLOBAL APPEND PROPERTY vigil_tests_of_etcd etcd_txn_corpus)
