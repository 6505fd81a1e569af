# `make` alone lists the targets.
PYTHON ?= python3
VENV := .venv
SERVE := .venv-serve
DALI := .venv-dali
COMPARES := .venv-conformance
PARITY := .venv-parity
PEERS := .venv-peers
BIN := $(VENV)/bin
ARCHITECTURES := x86_64 aarch64

# pip's --no-compile, which spares a minute: Python compiles the files that it imports.
export PIP_COMPILE := 0

.PHONY: help
help:  ## This list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 12

.PHONY: setup
setup: $(VENV)/.ready  ## The virtual environment, .venv, with all that serving needs

.PHONY: stub
stub: $(SERVE)/.ready  ## The environment for Triton's Python stub, .venv-serve: for tests and comparisons

# Python 3.10 and older have no tomllib.
define CHECK_PYTHON
import re, sys
wanted = re.search('requires-python = "(.*)"', open("pyproject.toml").read())[1]
oldest, too_new = (tuple(map(int, version.split("."))) for version in re.findall(r"\d+\.\d+", wanted))
if not oldest <= sys.version_info[:2] < too_new:
    sys.exit("penstock needs Python %s, this is %s: make PYTHON=python3.12" % (wanted, sys.version.split()[0]))
endef
export CHECK_PYTHON

# `penstock setup` compiles the kernels that the demonstration and usual pipelines need; `make kernels` compiles the others. The pip that
# Python 3.11 brings would take twice as long as a new one.
$(VENV)/.ready: pyproject.toml setup.py constraints.txt
	@$(PYTHON) -c "$$CHECK_PYTHON"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=23"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	$(BIN)/penstock setup
	@touch $@

$(SERVE)/.ready: $(VENV)/.ready constraints-serve.txt
	PIP_CONSTRAINT=constraints-serve.txt $(BIN)/penstock setup --stub $(SERVE) --with onnxruntime
	@touch $@

.PHONY: demo
demo: setup  ## Start Triton, send it digits and photographs over HTTP and gRPC, show answers, accuracy and latency, write build/demo.html
	@$(BIN)/python client_examples/demo.py

# As a pod with a read-only root does: with an emptyDir at /tmp it answers, and without one it says what it lacks.
.PHONY: demo-hardened
demo-hardened: setup  ## The demonstration as nobody without HOME, on a read-only root, without a network (takes root)
	@$(BIN)/python tests/serving/hardened.py $(CURDIR)/$(BIN)/python client_examples/demo.py
	@! $(BIN)/python tests/serving/hardened.py --without-tmp $(CURDIR)/$(BIN)/python client_examples/demo.py

# Tests serve models both in Triton's process and in its Python stub, which needs numpy 1.
test test-all test-plugins bench-serving mutate: export PENSTOCK_SERVE_ENV := $(CURDIR)/$(SERVE)

# A file's tests stay in one process: they share servers and compiled kernels. tests/conftest.py puts the longest files first.
PROCESSES := auto
# A process that ends at a test is not replaced: the run would wait forever for the rest of its file.
PARALLEL := -n $(PROCESSES) --maxprocesses 8 --max-worker-restart 0 --dist loadfile --no-loadscope-reorder

.PHONY: test
test: setup stub  ## A sample of each test's cases, without slow tests (make test ARGS="-k resize" for some)
	$(BIN)/python -m pytest $(PARALLEL) $(ARGS)

.PHONY: test-all
test-all: setup stub kernels $(VENV)/.compiles-wheels  ## All tests, as continuous integration runs them
	$(BIN)/python -m pytest --exhaustive $(PARALLEL) $(ARGS)

# Tests of the frameworks' plugins are collected only if these are installed. They were written with this version of PyTorch.
.PHONY: frameworks
frameworks: setup  ## PyTorch and JAX into .venv, for the tests of their plugins
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch==2.13.0 torchdata jax

# Values of transforms are compared with this version of torchvision, which needs this one of PyTorch.
.PHONY: plugins
plugins: frameworks  ## TensorFlow, Ray, Paddle and torchvision into .venv (2.6 GB), for the tests of their plugins
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[tensorflow,ray,paddle]" \
		torch==2.13.0 torchvision==0.28.0

.PHONY: test-plugins
test-plugins: plugins stub  ## All tests of the plugins for other frameworks
	$(BIN)/python -m pytest --exhaustive $(PARALLEL) tests/plugin $(ARGS)

# Tests that pass with a mutant do not hold the function that it changes. Results are in build/mutation.jsonl, and judged in a report.
.PHONY: mutate
mutate: setup stub  ## Mutation testing of 300 sampled functions with the tests that reach them; an hour (make mutate ARGS="--functions 20 --seed 3")
	@$(BIN)/python tests/mutation/mutation.py $(ARGS)

# JPEG kernels run a second time, with bounds checks and with arrays between protected pages.
.PHONY: fuzz
fuzz: setup  ## Send mutated files through all served decoders (make fuzz ARGS="--cases 1000000")
	PYTHONPATH=backend $(BIN)/python tests/fuzz/run.py $(ARGS)
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=build/checked_kernels PYTHONPATH=backend $(BIN)/python tests/fuzz/run.py --formats jpeg --fences

# Neither pipelines nor Python are involved: a million cases take about a minute. What is found names its case, which CASES=1 FIRST=NUMBER
# runs alone. Seeds have some kilobytes: whoever takes much memory for one believes a damaged header.
PARSERS := image_headers image_decoder png recordings
CASES := 10000000
SEED := 1
FIRST := 0
.PHONY: fuzz-core
fuzz-core: setup  ## Mutated files through the core's own parsers and PNG decoder, under sanitizers (make fuzz-core CASES=100000000 SEED=2)
	@mkdir -p build/fuzz-core
	$(CXX) -std=c++20 -O1 -g -fno-omit-frame-pointer -Wall -Wextra -Werror -fsanitize=address,undefined -fno-sanitize-recover=all \
		-rdynamic -o build/fuzz-core/parsers tests/fuzz/parsers.cc $(PARSERS:%=backend/core/%.cc) -ldl
	ASAN_OPTIONS=max_allocation_size_mb=64 build/fuzz-core/parsers build/fuzz-core/seeds \
		"$$(PYTHONPATH=backend $(BIN)/python tests/fuzz/write_seeds.py build/fuzz-core/seeds | tail -n 1)" $(CASES) $(SEED) $(FIRST)

# A program that uses the core from many threads; Python is not involved.
.PHONY: sanitize
sanitize:  ## The C++ core under the sanitizers for memory, undefined behaviour and threads
	@mkdir -p build/sanitize
	@for kind in address,undefined thread; do echo "sanitizer: $$kind"; \
		flags="-std=c++20 -O1 -g -fno-omit-frame-pointer -Wall -Wextra -Werror -fsanitize=$$kind -fno-sanitize-recover=all -pthread"; \
		$(CXX) $$flags -fPIC -shared -o build/sanitize/$$kind.so tests/core/stand_in_codec.cc && \
		$(CXX) $$flags -o build/sanitize/$$kind tests/core/stress.cc backend/core/*.cc -ldl && \
		build/sanitize/$$kind $(CURDIR)/build/sanitize/$$kind.so || exit 1; done

# Strict: a broken link inside the site ends the build. External links are listed in build/docs/external-links.txt.
.PHONY: docs
docs: setup  ## The documentation site, in build/docs (make docs ARGS=serve to read it while writing)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs $(or $(ARGS),build --quiet)

# Playwright's Chromium, or the one that CHROMIUM names: make test-site CHROMIUM=/usr/bin/chromium
.PHONY: test-site
test-site: docs  ## The site in a real browser: its search, what it loads, two widths, light and dark (SCREENSHOTS=FOLDER keeps pictures)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt playwright
	$(if $(CHROMIUM),,$(BIN)/playwright install --with-deps --only-shell chromium)
	PENSTOCK_SITE=build/docs CHROMIUM=$(CHROMIUM) SCREENSHOTS=$(SCREENSHOTS) $(BIN)/python -m pytest --exhaustive tests/docs/test_site.py

.PHONY: conformance
conformance: $(COMPARES)/.ready  ## Penstock and real DALI side by side: a table of a sample of cases, or of all (ARGS=--exhaustive)
	@PYTHONPATH=backend $(COMPARES)/bin/python tests/conformance/compare.py $(ARGS)

.PHONY: random-calls
random-calls: $(COMPARES)/.ready  ## Random calls of operators in Penstock and in real DALI (ARGS="--calls 5000 --only resize")
	@PYTHONPATH=backend $(COMPARES)/bin/python tests/conformance/random_calls.py $(ARGS)

.PHONY: random-graphs
random-graphs: $(COMPARES)/.ready  ## Random graphs of 3 to 12 operators in Penstock and in real DALI, node by node (ARGS="--graphs 5000 --seed 2")
	@PYTHONPATH=backend $(COMPARES)/bin/python tests/conformance/random_graphs.py $(ARGS)

.PHONY: notebooks
notebooks: setup  ## DALI's published notebooks on the CPU (CHECKOUT=PATH/TO/DALI, ARGS="--only general --write")
	@$(BIN)/python tests/qa/notebooks.py $(CHECKOUT) $(ARGS)

.PHONY: parity
parity: $(PARITY)/.ready  ## Resizing as Pillow, torchvision and OpenCV do it, against them: 10,000 random cases
	@PYTHONPATH=backend:tests/parity $(PARITY)/bin/python tests/parity/compare.py $(ARGS)

.PHONY: torchvision-suite
torchvision-suite: $(PARITY)/.ready  ## torchvision's own tests on our transforms (SUITE=PATH/TO/vision/test, ARGS="--sample 9 --write")
	@$(PARITY)/bin/python tests/conformance/torchvision_v2/suite.py $(SUITE) $(ARGS)

.PHONY: answers
answers: frameworks  ## Whether answers change: real networks after our pipelines, after their own preprocessing, after other libraries' resizing
	@$(BIN)/python tests/answers/run.py $(ARGS)

.PHONY: serve
serve: setup  ## Serve model_repository until Ctrl-C
	$(BIN)/penstock serve model_repository

.PHONY: kernels
kernels: setup  ## The kernels again that have changed, compiled for this machine, and those that are new in the list
	$(BIN)/python -m penstock.kernels.building

# Whatever tests run and benchmarks measure is recorded, and added to the list.
.PHONY: signatures
signatures: setup  ## Add to the list of kernels to compile what tests need that is not in it (make signatures ARGS=tests/golden)
	@rm -f build/signatures.txt && mkdir -p build
	PENSTOCK_RECORD_KERNELS=$(CURDIR)/build/signatures.txt $(BIN)/python -m pytest $(PARALLEL) $(or $(ARGS),tests/golden tests/sweeps tests/operators tests/parity)
	$(BIN)/python -m penstock.kernels.building --merge build/signatures.txt

# ziglang compiles for all architectures, with the C library that wheels may expect; NVRTC compiles CUDA kernels, without a GPU.
$(VENV)/.compiles-wheels: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt ziglang nvidia-cuda-nvrtc-cu12
	@touch $@

.PHONY: wheels
wheels: setup $(VENV)/.compiles-wheels  ## Wheels, in dist, for machines without a compiler (ARCHITECTURES="x86_64 aarch64")
	$(BIN)/python -m penstock.kernels.building --cuda
	@for architecture in $(ARCHITECTURES); do \
		$(BIN)/python -m penstock.kernels.building --levels $$architecture && \
		PENSTOCK_COMPILED=$$architecture $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w dist . \
		|| exit 1; done

.PHONY: test-levels
test-levels: setup  ## All goldens with the wheel's kernels for each level of x86-64 (make test-levels ARGS="-k resize")
	@ls dist/*_x86_64.whl > /dev/null 2>&1 || $(MAKE) --no-print-directory wheels ARCHITECTURES=x86_64
	$(BIN)/python tests/platforms/levels.py --exhaustive $(ARGS)

$(VENV)/.releases: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt build twine
	@touch $@

.PHONY: release
release: wheels $(VENV)/.releases  ## Wheels and sources in dist, checked; dates the changelog and tags the version (ARGS=--dry-run)
	$(BIN)/python -m build --sdist --no-isolation --outdir dist .
	$(BIN)/python .ci/release.py --architectures $(ARCHITECTURES) $(ARGS)

# Its Python, libc and NumPy are those of Debian and PyPI, which are downloaded into build/aarch64; programs of that architecture are
# emulated, so this takes long.
.PHONY: test-aarch64
test-aarch64: setup  ## The wheel for aarch64 under emulation: sampled goldens, equal to the bit (needs Debian's qemu-user-static)
	@$(MAKE) --no-print-directory wheels ARCHITECTURES=aarch64
	$(BIN)/python tests/platforms/aarch64.py $(ARGS)

# Triton itself, emulated: READY, and the answers of this machine's server. A Debian system is unpacked into build/aarch64.
.PHONY: test-aarch64-serving
test-aarch64-serving: setup  ## Serve with the wheel for aarch64 under emulation (takes root, qemu-user-static, debootstrap)
	@ls dist/*_aarch64.whl > /dev/null 2>&1 || $(MAKE) --no-print-directory wheels ARCHITECTURES=aarch64
	$(BIN)/python tests/platforms/aarch64_serving.py

.PHONY: lint
lint: setup stubs  ## Style and types
	$(BIN)/ruff check .ci backend tests client_examples docs examples
	$(BIN)/ruff format --check .ci backend tests client_examples docs examples
	$(BIN)/mypy

.PHONY: format
format: setup  ## Bring the code into shape
	$(BIN)/ruff check --fix backend tests client_examples docs examples
	$(BIN)/ruff format backend tests client_examples docs examples

# Real DALI with all of Penstock's dependencies, and pytest. It is separate from the benchmark's DALI, whose numpy 1 allows only
# versions of OpenCV that give other results than DALI's.
$(COMPARES)/.ready: $(VENV)/.ready pyproject.toml
	test -x $(COMPARES)/bin/python || $(BIN)/python -m venv --without-pip $(COMPARES)
	$(BIN)/python -m pip --python $(COMPARES)/bin/python install --quiet --disable-pip-version-check nvidia-dali-cuda120 \
		-e ".[image,audio,readers,server,video]" pytest pytest-timeout
	@touch $@

$(PARITY)/.ready: $(VENV)/.ready pyproject.toml
	test -x $(PARITY)/bin/python || $(BIN)/python -m venv --without-pip $(PARITY)
	$(BIN)/python -m pip --python $(PARITY)/bin/python install --quiet --disable-pip-version-check -e ".[parity]" pytest
	@touch $@

# Real DALI and the libraries that people would use instead.
$(PEERS)/.ready: $(VENV)/.ready pyproject.toml
	test -x $(PEERS)/bin/python || $(BIN)/python -m venv --without-pip $(PEERS)
	$(BIN)/python -m pip --python $(PEERS)/bin/python install --quiet --disable-pip-version-check nvidia-dali-cuda120 \
		-e ".[image,audio,readers,video,parity]" albumentations librosa torchaudio
	@touch $@

.PHONY: stubs
stubs: setup  ## Refresh the type stubs of fn and ops, and the index of operators, after one was added or changed
	@$(BIN)/penstock stubs

.PHONY: bench-presets
bench-presets: $(PARITY)/.ready  ## Presets beside the classes of transformers, from files to tensors
	@PYTHONPATH=backend:tests/parity $(PARITY)/bin/python tests/benchmarks/presets.py $(ARGS)

.PHONY: bench-resizing
bench-resizing: $(PARITY)/.ready  ## Resizing with Pillow's arithmetic beside our own, and beside Pillow
	@PYTHONPATH=backend $(PARITY)/bin/python tests/benchmarks/resizing.py $(ARGS)

.PHONY: bench-operators
bench-operators: $(PEERS)/.ready  ## Every public operator beside its best peer: DALI, OpenCV, torchvision and others (ARGS="--filter resize")
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONPATH=backend:tests/parity $(PEERS)/bin/python tests/benchmarks/operators.py $(ARGS)

.PHONY: bench-threads
bench-threads: $(PARITY)/.ready  ## Presets with two threads beside one
	@PYTHONPATH=backend $(PARITY)/bin/python tests/benchmarks/threads.py $(ARGS)

.PHONY: bench
bench: bench-engine bench-operators bench-presets bench-resizing bench-threads bench-serving  ## Speed beside real DALI: operators, pipelines, growth, serving (half an hour)

# What only rows on a GPU need.
$(COMPARES)/.ready-gpu: $(COMPARES)/.ready
	$(BIN)/python -m pip --python $(COMPARES)/bin/python install --quiet --disable-pip-version-check -e ".[gpu]" torch torchvision
	@touch $@

.PHONY: bench-engine
bench-engine: $(COMPARES)/.ready$(if $(findstring --gpu,$(ARGS)),-gpu)  ## Pipelines, loops and readers compared with DALI on CPU, and operators on a GPU: ARGS=--gpu
	@for suite in pipelines $(if $(findstring --gpu,$(ARGS)),operators uploads gpu_memory training,small_images loops growth readers files) video; do \
		PYTHONPATH=backend:tests/parity $(COMPARES)/bin/python tests/benchmarks/$$suite.py \
			$(if $(findstring --gpu,$(ARGS)),$$(test $$suite = gpu_memory -o $$suite = training || echo $(ARGS)),$(ARGS)) || exit 1; done
	@$(COMPARES)/bin/python tests/benchmarks/tables.py

.PHONY: bench-serving
bench-serving: setup $(DALI)/.ready  ## Speed and memory through Triton, against DALI, Pillow and the floor; on a GPU: ARGS=--gpu
ifneq (,$(findstring --gpu,$(ARGS)))
	$(BIN)/python tests/benchmarks/serving/ways.py $(ARGS)
	$(BIN)/python tests/benchmarks/serving/by_grpc.py
	$(BIN)/python tests/benchmarks/served_gpu.py
else
	$(BIN)/python tests/benchmarks/serving/bench.py --dali-env $(DALI) $(ARGS)
	$(BIN)/python tests/benchmarks/serving/ways.py
	$(BIN)/python tests/benchmarks/serving/front.py
	$(BIN)/python tests/benchmarks/serving/read_pages.py
endif

# Real DALI, which the benchmark runs in a plain Python model in the same Triton.
$(DALI)/.ready: $(SERVE)/.ready
	$(SERVE)/bin/python -m venv --without-pip $(DALI)
	$(BIN)/python -m pip --python $(DALI)/bin/python install --quiet --disable-pip-version-check "numpy<2" nvidia-dali-cuda120
	@touch $@

.PHONY: train
train: setup  ## Retrain the digits classifier and write its ONNX file
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[train]"
	$(BIN)/python training/train_digits.py

.PHONY: train-jax
train-jax: setup  ## The same in JAX, to compare: a table of accuracies
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[demo,jax]"
	$(BIN)/python training/train_digits_jax.py

.PHONY: models
models: setup  ## Rewrite the model folders of pipelines/
	@for file in pipelines/*_preprocess.py; do $(BIN)/penstock export $$file model_repository/$$(basename $$file .py); done

lock: OLDEST_PYTHON = $(shell sed -nE 's/^requires-python = ">=([0-9.]+),.*/\1/p' pyproject.toml)
.PHONY: lock
lock: $(VENV)/.ready  ## Update the constraints, for all supported Pythons (with uv)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --universal --python-version $(OLDEST_PYTHON) --no-header --no-annotate --upgrade --quiet \
		--extra dev --extra docs pyproject.toml -o constraints.txt
	printf 'onnxruntime\nnumpy<2\n' | $(BIN)/uv pip compile --universal --python-version $(OLDEST_PYTHON) --no-header --no-annotate \
		--upgrade --quiet --extra server --extra image --extra audio --extra video --extra gpu pyproject.toml - -o constraints-serve.txt

.PHONY: clean
clean:  ## Remove everything generated, except the model repository
	rm -rf $(VENV) $(SERVE) $(DALI) $(COMPARES) $(PARITY) $(PEERS) build .pytest_cache .ruff_cache .mypy_cache
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
