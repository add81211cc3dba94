from jaxbandit.engines.runner import Runner
class BlockRunner(Runner): pass
