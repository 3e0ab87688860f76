from .parametric_models import draw
from .parametric_trial import attempt
def test_x(tmp_path):
    print(attempt(draw(1,hostile=True),tmp_path))
