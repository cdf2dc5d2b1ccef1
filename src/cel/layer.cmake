# Included by vigil_layer(cel): the program that is compared with cel-go (tests/cel_oracle.py).

vigil_bench(cel)
vigil_tool(cel_oracle cel ${CMAKE_SOURCE_DIR}/tests/cel_oracle.c)
set_property(GLOBAL APPEND PROPERTY vigil_tests_of_cel cel_oracle)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME cel/oracle COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/cel_oracle.py $<TARGET_FILE:cel_oracle>)
set_tests_properties(cel/oracle PROPERTIES TIMEOUT 300)
vigil_corpus(cel parse)
vigil_corpus(cel check)
vigil_corpus(cel eval)
