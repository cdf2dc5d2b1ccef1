# Included by vigil_layer(kube): the program that is compared with Kubernetes' own code (tests/kube_oracle.py).

vigil_tool(kube_oracle kube ${CMAKE_SOURCE_DIR}/tests/kube_oracle.c)
set_property(GLOBAL APPEND PROPERTY vigil_tests_of_kube kube_oracle)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME kube/oracle COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/kube_oracle.py $<TARGET_FILE:kube_oracle>)
set_tests_properties(kube/oracle PROPERTIES TIMEOUT 300)
vigil_corpus(kube schema)
vigil_corpus(kube custom)
vigil_corpus(kube apply)
vigil_corpus(kube patch)
vigil_corpus(kube yaml)
